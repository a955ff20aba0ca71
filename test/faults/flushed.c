/*
 * Keeps beside each file of a database what of it is on the disk: a copy that is made when a flush of it has returned.
 * FLUSHED_FILES is the path that their names begin with, FLUSHED_FOLDER is where the copies go. A process that is killed
 * and whose files are put back from there finds what a machine finds whose power was cut.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

/* Commits and the write-back of the log flush from two threads. One copy at a time, so that no older one replaces a newer one. */
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

static void keep(int fd) {
  const char *files = getenv("FLUSHED_FILES"), *folder = getenv("FLUSHED_FOLDER");
  char link[64], path[PATH_MAX], copy[PATH_MAX], part[PATH_MAX];
  enum { CHUNK = 1 << 20 };
  char *bytes;
  if (files == NULL || folder == NULL) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  if (strncmp(path, files, strlen(files)) != 0) return;
  const char *name = strrchr(path, '/') + 1;
  snprintf(copy, sizeof copy, "%s/%s", folder, name);
  snprintf(part, sizeof part, "%s/%s.part", folder, name);
  pthread_mutex_lock(&copying);
  int from = open(path, O_RDONLY | O_CLOEXEC);
  int to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bytes = malloc(CHUNK);
  if (from < 0 || to < 0 || bytes == NULL) abort();
  for (ssize_t got; (got = read(from, bytes, CHUNK)) != 0;)
    if (got < 0 || write(to, bytes, (size_t)got) != got) abort();
  free(bytes);
  close(from);
  close(to);
  if (rename(part, copy) != 0) abort();
  pthread_mutex_unlock(&copying);
}

int fsync(int fd) {
  if (real_fsync == NULL) real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  int result = real_fsync(fd);
  if (result == 0) keep(fd);
  return result;
}

int fdatasync(int fd) {
  if (real_fdatasync == NULL) real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  int result = real_fdatasync(fd);
  if (result == 0) keep(fd);
  return result;
}
