// SPDX-License-Identifier: Apache-2.0

// Runs a program for which chosen system calls fail: `SandboxProbe ERRNO CALL[,CALL…] PROGRAM [ARGUMENT…]`.
//
// ERRNO is a number. CALL is the name of a system call, `map-shared` (mmap with MAP_SHARED), or `between-directories`:
// links and renames from one directory to another, which Landlock answers with EXDEV whatever ERRNO is. All holds for the
// program and what it starts. Exits with 99 where it can't be set, 98 for a call that there is not.

#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The same numbers on every architecture; older headers lack them.
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif

#define CALL(name) {#name, SYS_##name}

static const struct {
    const char *name;
    int number;
} calls[] = {
    CALL(accept4), CALL(bind), CALL(brk), CALL(chdir), CALL(clock_gettime), CALL(clock_nanosleep), CALL(clone),
    CALL(clone3), CALL(close), CALL(close_range), CALL(connect), CALL(copy_file_range), CALL(dup), CALL(dup3),
    CALL(epoll_create1), CALL(epoll_ctl), CALL(eventfd2), CALL(execve), CALL(faccessat), CALL(faccessat2),
    CALL(fadvise64), CALL(fallocate), CALL(fchmod), CALL(fchmodat), CALL(fchown), CALL(fchownat), CALL(fcntl),
    CALL(fdatasync), CALL(fgetxattr), CALL(flock), CALL(fremovexattr), CALL(fsetxattr), CALL(fstat), CALL(fstatfs),
    CALL(fsync), CALL(ftruncate), CALL(futex), CALL(getcwd), CALL(getdents64), CALL(getegid), CALL(geteuid),
    CALL(getgid), CALL(getpid), CALL(getppid), CALL(getrandom), CALL(gettid), CALL(getuid), CALL(getxattr),
    CALL(getxattrat), CALL(ioctl), CALL(kill), CALL(lgetxattr), CALL(linkat), CALL(listxattr), CALL(lseek),
    CALL(lsetxattr), CALL(madvise), CALL(membarrier), CALL(memfd_create), CALL(mincore), CALL(mkdirat), CALL(mlock),
    CALL(mmap), CALL(mprotect), CALL(mremap), CALL(msync), CALL(munmap), CALL(nanosleep), CALL(newfstatat),
    CALL(openat), CALL(openat2), CALL(pidfd_open), CALL(pipe2), CALL(ppoll), CALL(prctl), CALL(pread64),
    CALL(prlimit64), CALL(pwrite64), CALL(pwritev), CALL(read), CALL(readlinkat), CALL(readv), CALL(removexattr),
    CALL(removexattrat), CALL(renameat), CALL(renameat2), CALL(rseq), CALL(rt_sigaction), CALL(rt_sigprocmask),
    CALL(rt_sigtimedwait), CALL(sched_getaffinity), CALL(sched_yield), CALL(sendfile), CALL(set_robust_list),
    CALL(set_tid_address), CALL(setsid), CALL(setxattr), CALL(setxattrat), CALL(sigaltstack), CALL(signalfd4),
    CALL(socket), CALL(socketpair), CALL(statfs), CALL(statx), CALL(symlinkat), CALL(sysinfo), CALL(tgkill),
    CALL(uname), CALL(unlinkat), CALL(utimensat), CALL(wait4), CALL(waitid), CALL(write), CALL(writev),
#ifdef __x86_64__
    CALL(access), CALL(arch_prctl), CALL(chmod), CALL(dup2), CALL(fork), CALL(getdents), CALL(link), CALL(lstat),
    CALL(mkdir), CALL(open), CALL(pipe), CALL(poll), CALL(readlink), CALL(rename), CALL(rmdir), CALL(select),
    CALL(stat), CALL(symlink), CALL(time), CALL(unlink), CALL(utime), CALL(vfork),
#endif
};

static struct sock_filter filter[1024];
static unsigned short length;

static void add(unsigned short code, unsigned k, unsigned char yes, unsigned char no) {
    filter[length++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static unsigned low_half(int argument) {
    // The lower half comes first on all architectures that Swift runs on.
    return (unsigned)(offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
}

/// Fails calls of this number, if `mask` is not 0 only those whose argument has one of its bits.
static void refuse(int number, unsigned error, int argument, unsigned mask) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, mask ? 3 : 1);
    if (mask) {
        add(BPF_LD | BPF_W | BPF_ABS, low_half(argument), 0, 0);
        add(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & 0xffff), 0, 0);
}

/// A domain of Landlock that handles anything at all forbids this unless it is allowed (landlock(7), LANDLOCK_ACCESS_FS_REFER);
/// here it handles making devices.
static int refuse_between_directories(void) {
    uint64_t handled = 1 << 11 | 1 << 6;
    long rules = syscall(444, &handled, sizeof handled, 0);
    if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(446, rules, 0) != 0) {
        perror("SandboxProbe: landlock");
        exit(99);
    }
    close((int)rules);
    return 0;
}

static int refuse_named(const char *name, unsigned error) {
    if (strcmp(name, "between-directories") == 0) return refuse_between_directories();
    if (strcmp(name, "map-shared") == 0) return refuse(SYS_mmap, error, 3, MAP_SHARED), 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0) return refuse(calls[i].number, error, 0, 0), 0;
    return -1;
}

int main(int count, char **words) {
    if (count < 4) return 64;
    unsigned error = (unsigned)atoi(words[1]);
    for (char *name = strtok(words[2], ","); name; name = strtok(NULL, ","))
        if (refuse_named(name, error) != 0) {
            fprintf(stderr, "SandboxProbe: no system call %s\n", name);
            return 98;
        }
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("SandboxProbe: seccomp");
        return 99;
    }
    execv(words[3], words + 3);
    perror("SandboxProbe: execv");
    return 99;
}
