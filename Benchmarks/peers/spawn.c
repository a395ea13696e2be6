// SPDX-License-Identifier: Apache-2.0
//
// Times a command from its start to its end: spawn N SYSTEM COMMAND ARGUMENT... Its output goes to /dev/null.

#include "harness.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s N SYSTEM COMMAND ARGUMENT...\n", argv[0]);
        return 2;
    }
    static Result r;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (long i = atol(argv[1]); i > 0; i--) {
        pid_t child;
        int status;
        uint64_t start = now_ns();
        if (posix_spawnp(&child, argv[3], &actions, 0, argv + 3, environ)) {
            perror(argv[3]);
            return 1;
        }
        waitpid(child, &status, 0);
        record(&r, now_ns() - start);
        if (status) r.errs++;
    }
    printf("{\"system\":\"%s\",\"workload\":\"W11\",\"op\":\"command_get\",\"variant\":\"\",\"size\":4096,\"procs\":1,"
           "\"threads\":1,\"ops\":%lu,\"errs\":%lu,\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"mean_ns\":%.0f}\n",
           argv[2], r.ops, r.errs, percentile(&r, .5), percentile(&r, .99), (double)r.sum / r.ops);
    return r.errs != 0;
}
