// SPDX-License-Identifier: Apache-2.0
//
// The limit of a client over HTTP: libcurl by itself, one handle, one kept connection, each body into memory.
// Reads URLs from standard input; prints processor time and time on the clock, in nanoseconds a request.

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct {
    char *bytes;
    size_t length, room;
} Body;

static size_t take(char *bytes, size_t size, size_t count, void *context) {
    Body *body = context;
    size_t length = size * count;
    if (body->length + length > body->room) {
        body->room = 2 * (body->length + length);
        body->bytes = realloc(body->bytes, body->room);
    }
    memcpy(body->bytes + body->length, bytes, length);
    body->length += length;
    return length;
}

static double processor_time(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(void) {
    char **urls = NULL, *line = NULL;
    size_t room = 0;
    long count = 0;
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = 0;
        urls = realloc(urls, sizeof *urls * (count + 1));
        urls[count++] = strdup(line);
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    Body body = {0};
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    double begin = processor_time(), clock = now();
    for (long i = 0; i < count; i++) {
        body.length = 0;
        curl_easy_setopt(curl, CURLOPT_URL, urls[i]);
        CURLcode code = curl_easy_perform(curl);
        if (code != CURLE_OK) {
            fprintf(stderr, "%s: %s\n", urls[i], curl_easy_strerror(code));
            return 1;
        }
    }
    double end = processor_time(), span = now() - clock;
    printf("%.0f %.0f\n", (end - begin) / count, span / count);
    return 0;
}
