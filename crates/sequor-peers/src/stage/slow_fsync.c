/* Preloaded into a server: each flush of a file to the disk takes one millisecond longer, as on the
 * network disks that most servers have. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static void wait_one_millisecond(void) {
    struct timespec time = {0, 1000 * 1000};
    nanosleep(&time, 0);
}

static int flush(const char *name, int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    wait_one_millisecond();
    return real(file);
}

int fsync(int file) { return flush("fsync", file); }

int fdatasync(int file) { return flush("fdatasync", file); }
