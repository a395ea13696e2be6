# SPDX-License-Identifier: Apache-2.0
"""The file systems that are measured, and what has to be undone on each."""

import ctypes
import os
import shutil
import subprocess
import tempfile

from .session import IS_ROOT, log, output

LIBC = ctypes.CDLL(None, use_errno=True)
# Bytes: the largest workload fills some 3 GB, a million entries of two files each take 5 GB; the image is sparse.
IMAGE_SIZE = 12 << 30
NEEDED = 4 << 30
# One inode for so many bytes: three million, of which a million entries need two thirds. mkfs makes a quarter of them.
BYTES_PER_INODE = 4096


class Place:
    """A directory on one file system, removed at the end."""

    def __init__(self, label, path, how):
        self.label, self.path, self.how = label, path, how
        self.number = 0

    def new(self, name):
        """The path of a directory that does not exist yet."""
        self.number += 1
        return os.path.join(self.path, "%s-%d" % (name, self.number))

    def sync(self):
        """What was written goes to the medium now and not while something is timed."""
        descriptor = os.open(self.path, os.O_RDONLY)
        LIBC.syncfs(descriptor)
        os.close(descriptor)

    def remove(self, path):
        subprocess.run(["rm", "-rf", path])

    def empty(self):
        for name in os.listdir(self.path):
            self.remove(os.path.join(self.path, name))

    def description(self):
        return {"path": self.path, "type": kind(self.path), "how": self.how, "free_bytes": shutil.disk_usage(self.path).free}

    def close(self):
        self.remove(self.path)


class Journaled(Place):
    """Ext4 as mkfs makes it, with a journal, on a loop device with direct I/O to an image in `parent`."""

    def __init__(self, parent):
        self.image = self.device = None
        self.is_mounted = False
        super().__init__("ext4", os.path.join(parent, "mount"), "journaled ext4, defaults of mkfs, on a loop device")

    def open(self):
        os.mkdir(self.path)
        self.image = self.path + ".img"
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_SIZE)
        # Whatever mkfs leaves for later would be done while something is timed.
        run("mkfs.ext4", "-q", "-F", "-i", str(BYTES_PER_INODE), "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)
        try:
            self.device = run("losetup", "--show", "--direct-io=on", "-f", self.image)
        except OSError:
            self.how = "journaled ext4, defaults of mkfs, on a loop device without direct I/O"
            self.device = run("losetup", "--show", "-f", self.image)
        run("mount", self.device, self.path)
        self.is_mounted = True

    def close(self):
        if self.is_mounted:
            subprocess.run(["umount", self.path])
        if self.device:
            subprocess.run(["losetup", "-d", self.device])
        if self.image and os.path.exists(self.image):
            os.unlink(self.image)
        if os.path.isdir(self.path) and not os.path.ismount(self.path):
            os.rmdir(self.path)


def run(*command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise OSError("%s is not installed" % command[0])
    if result.returncode:
        raise OSError("%s: %s" % (command[0], result.stderr.strip().split("\n")[-1]))
    return result.stdout.strip()


def kind(path):
    """The type of the file system that a path is on."""
    return output("findmnt", "-n", "-o", "FSTYPE", "-T", path).split("\n")[0] or output("stat", "-f", "-c", "%T", path) or "unknown"


def open_ext4(parent, notes, opened):
    """Journaled ext4 where that can be had, else the directory itself, with a note."""
    if not IS_ROOT:
        why = "only root can mount a loop device"
    elif shutil.disk_usage(parent).free < NEEDED:
        why = "%s has less than %d GB free" % (parent, NEEDED >> 30)
    else:
        place = Journaled(parent)
        opened.append(place)
        try:
            place.open()
            return place
        except OSError as error:
            why = str(error)
            place.close()
            opened.remove(place)
    path = os.path.join(parent, "plain")
    os.mkdir(path)
    place = Place(kind(path), path, "the directory as it is")
    opened.append(place)
    notes.append("no journaled ext4 of our own: %s; measured on %s (%s)" % (why, path, place.label))
    log(notes[-1])
    return place


def open_tmpfs(opened):
    if kind("/dev/shm") != "tmpfs":
        raise OSError("/dev/shm is no tmpfs")
    place = Place("tmpfs", tempfile.mkdtemp(prefix="diskcache-compare-", dir="/dev/shm"), "tmpfs at /dev/shm")
    opened.append(place)
    return place
