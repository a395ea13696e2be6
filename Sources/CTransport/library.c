// SPDX-License-Identifier: Apache-2.0

#include "line.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ctransport_library *ctransport_open(const char *name, char *reason, size_t capacity) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *words = dlerror();
        snprintf(reason, capacity, "%s", words == NULL ? name : words);
        return NULL;
    }
    ctransport_library *library = calloc(1, sizeof(*library));
    if (library == NULL) {
        snprintf(reason, capacity, "%s", strerror(ENOMEM));
        return NULL;
    }
    const struct {
        const char *name;
        void **place;
    } functions[] = {
        {"curl_version", (void **)&library->version},
        {"curl_global_init", (void **)&library->global_init},
        {"curl_easy_init", (void **)&library->easy_init},
        {"curl_easy_cleanup", (void **)&library->easy_cleanup},
        {"curl_easy_perform", (void **)&library->easy_perform},
        {"curl_easy_recv", (void **)&library->easy_recv},
        {"curl_easy_send", (void **)&library->easy_send},
        {"curl_easy_setopt", (void **)&library->easy_setopt},
        {"curl_easy_getinfo", (void **)&library->easy_getinfo},
        {"curl_easy_strerror", (void **)&library->easy_strerror},
        {"curl_getdate", (void **)&library->getdate},
        {"curl_slist_append", (void **)&library->slist_append},
        {"curl_slist_free_all", (void **)&library->slist_free_all},
        {"curl_share_init", (void **)&library->share_init},
        {"curl_share_setopt", (void **)&library->share_setopt},
        {"curl_share_cleanup", (void **)&library->share_cleanup},
        {"curl_multi_init", (void **)&library->multi_init},
        {"curl_multi_setopt", (void **)&library->multi_setopt},
        {"curl_multi_cleanup", (void **)&library->multi_cleanup},
        {"curl_multi_add_handle", (void **)&library->multi_add_handle},
        {"curl_multi_remove_handle", (void **)&library->multi_remove_handle},
        {"curl_multi_perform", (void **)&library->multi_perform},
        {"curl_multi_poll", (void **)&library->multi_poll},
        {"curl_multi_info_read", (void **)&library->multi_info_read},
    };
    for (size_t index = 0; index < sizeof(functions) / sizeof(functions[0]); index++) {
        *functions[index].place = dlsym(handle, functions[index].name);
        if (*functions[index].place == NULL) {
            snprintf(reason, capacity, "%s has no %s", name, functions[index].name);
            free(library);
            return NULL;
        }
    }
    int code = library->global_init(GLOBAL_ALL);
    if (code != 0) {
        snprintf(reason, capacity, "%s: %s", name, library->easy_strerror(code));
        free(library);
        return NULL;
    }
    // "libcurl/7.76.1 …"
    const char *version = library->version();
    const char *const careless[] = {"libcurl/7.75.", "libcurl/7.76."};
    for (size_t index = 0; index < sizeof(careless) / sizeof(careless[0]); index++) {
        if (strncmp(version, careless[index], strlen(careless[index])) == 0) {
            library->is_careless_with_sessions = true;
        }
    }
    return library;
}

int64_t ctransport_date(const ctransport_library *library, const char *text) {
    return library->getdate(text, NULL);
}
