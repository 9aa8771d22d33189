/* turn URL NAME: acquires the lock if it is free, and prints the token; 75 if another client holds
 * it. */
#include <holdfast.h>
#include <stdio.h>

int main(int argc, char** argv) {
    hf_error error = HF_ERROR;
    hf_acquire_options options = HF_ACQUIRE_OPTIONS;
    hf_facts facts = HF_FACTS;
    hf_client* client = NULL;
    hf_lock* lock = NULL;
    hf_lease* lease = NULL;
    int code;
    if (argc != 3) return 64;
    options.wait = 0;
    code = hf_open(argv[1], NULL, &client, &error);
    if (!code) code = hf_lock_new(client, argv[2], NULL, &lock, &error);
    if (!code) code = hf_acquire(lock, &options, &lease, &error);
    if (!code) code = hf_lease_look(lease, 0, &facts, &error);
    if (!code) printf("%llu\n", (unsigned long long)facts.token);
    if (!code) code = hf_lease_release(lease, 0, &error);
    if (code) fprintf(stderr, "%s\n", error.message);
    hf_lease_free(lease);
    hf_lock_free(lock);
    hf_client_free(client);
    return code == HF_CONTENDED ? 75 : code != 0;
}
