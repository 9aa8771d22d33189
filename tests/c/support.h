/* What the program's files share: two clients, and calls that must succeed. */
#ifndef BASICS_SUPPORT_H
#define BASICS_SUPPORT_H
#define _POSIX_C_SOURCE 200809L
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { cap_ms = 20000 }; /* of what must come */
extern int queues;       /* the backend shows who waits */
extern hf_client* one;
extern hf_client* other;
extern hf_error why;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s\n  last error: %d %s\n", __FILE__, __LINE__, #condition, \
                    (int)why.code, why.message);                                                \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define OK(call) CHECK((call) == HF_OK)

long long now_ms(void);
hf_lock* lock_of(hf_client* client, const char* name, int kind, unsigned limit);
int try_it(const hf_lock* lock, int shared, unsigned permits, int64_t wait, hf_lease** lease);
hf_lease* acquire(const hf_lock* lock);
void release(hf_lease* lease);
hf_facts facts_of(const hf_lease* lease);
uint64_t start(const hf_lock* lock, hf_queue* queue, int64_t wait);
/* The answer of this call, which has to be the next. */
hf_event answer(hf_queue* queue, uint64_t call);
void nothing_waits(hf_queue* queue);
char* ask(hf_client* client, int what, const char* name);
void says(hf_client* client, int what, const char* name, const char* text);
/* Until it is said, since a waiter needs a moment to be seen. */
void says_soon(hf_client* client, int what, const char* name, const char* text);

/* In lifetimes.c. */
void older_callers(void);
void in_threads(void);
void forks(const char* url);
void closing(void);
void reports(const char* url);

#endif
