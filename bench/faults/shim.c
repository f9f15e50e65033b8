/* Faults from outside: counts the calls by which a process changes files or starts others, and at the n-th of them ends the
   process or fails the call. Preloaded; does nothing until faults_arm is called, or FAULTS_ARM says "kinds mode n". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { SYNC = 1, MOVE = 2, SPAWN = 4, CUT = 8, WRITE = 16 };
enum { COUNT = 0, DIE = 1, FULL_FROM = 2, FULL_ONCE = 3, STOP = 4 };
static int kinds, mode;
static long at, seen;

void faults_arm(int these, int how, long n) { kinds = these; mode = how; at = n; seen = 0; }
long faults_seen(void) { return seen; }

__attribute__((constructor)) static void from_environment(void) {
    const char *text = getenv("FAULTS_ARM");
    if (text) { sscanf(text, "%d %d %ld", &kinds, &mode, &at); }
}

/* 1 where this call has to fail. */
static int step(int kind) {
    if (!(kinds & kind)) return 0;
    seen++;
    if (mode == DIE && seen == at) { kill(getpid(), SIGKILL); for (;;) pause(); }
    if (mode == STOP && seen == at) kill(getpid(), SIGSTOP);
    return (mode == FULL_FROM && seen >= at) || (mode == FULL_ONCE && seen == at);
}

static int regular(int fd) { struct stat s; return fstat(fd, &s) == 0 && S_ISREG(s.st_mode); }

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)
#define FAIL { errno = ENOSPC; return -1; }

int fsync(int fd) { REAL(int, "fsync", int); if (step(SYNC)) FAIL; return real(fd); }
int fdatasync(int fd) { REAL(int, "fdatasync", int); if (step(SYNC)) FAIL; return real(fd); }
int rename(const char *a, const char *b) { REAL(int, "rename", const char *, const char *); if (step(MOVE)) FAIL; return real(a, b); }
int renameat(int x, const char *a, int y, const char *b) {
    REAL(int, "renameat", int, const char *, int, const char *); if (step(MOVE)) FAIL; return real(x, a, y, b); }
int link(const char *a, const char *b) { REAL(int, "link", const char *, const char *); if (step(MOVE)) FAIL; return real(a, b); }
int linkat(int x, const char *a, int y, const char *b, int f) {
    REAL(int, "linkat", int, const char *, int, const char *, int); if (step(MOVE)) FAIL; return real(x, a, y, b, f); }
int unlink(const char *a) { REAL(int, "unlink", const char *); if (mode != FULL_FROM && mode != FULL_ONCE) step(CUT); return real(a); }
int ftruncate(int fd, off_t n) { REAL(int, "ftruncate", int, off_t); if (mode != FULL_FROM && mode != FULL_ONCE) step(CUT); return real(fd, n); }
int ftruncate64(int fd, off64_t n) { REAL(int, "ftruncate64", int, off64_t); if (mode != FULL_FROM && mode != FULL_ONCE) step(CUT); return real(fd, n); }
ssize_t write(int fd, const void *b, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t); if (kinds && regular(fd) && step(WRITE)) FAIL; return real(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t); if (kinds && regular(fd) && step(WRITE)) FAIL; return real(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t); if (kinds && regular(fd) && step(WRITE)) FAIL; return real(fd, b, n, o); }
int posix_spawn(pid_t *p, const char *f, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *t, char *const v[], char *const e[]) {
    REAL(int, "posix_spawn", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
    if (step(SPAWN)) return ENOSPC; return real(p, f, a, t, v, e); }
pid_t fork(void) { REAL(pid_t, "fork", void); if (step(SPAWN)) FAIL; return real(); }
