/* Memory offered to other processes, and memory of other processes; see share.c. */
#ifndef HOSTACL_SHARE_H
#define HOSTACL_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl_rt.h"
#include "phys.h"

/* Bytes of a key as text, the closing zero included. */
#define SHARE_TEXT_BYTES 65

/* What is offered. */
struct share_offer {
    const struct phys *phys;   /* where the bytes are; with memory files of its own */
    const struct pages *pages; /* allocation that holds the bytes */
    uint64_t offset;           /* first byte offered */
    uint64_t bytes;            /* bytes offered, whole pages */
    aclrtMemAttr attr;         /* kind of memory */
    aclrtMemLocation location; /* where it is */
    uint64_t owner;            /* address of the block it is, or 0 for a handle */
    bool check_pids;           /* only listed processes may import */
};

struct share; /* an offer of this process */

/* Memory of another process, visible here. */
struct import {
    uint64_t token;            /* what the exporter gave out */
    struct phys phys;          /* window over the bytes */
    struct pages pages;        /* its extents */
    aclrtMemAttr attr;         /* kind of memory */
    aclrtMemLocation location; /* where it is in the exporter */
    int record;                /* the exporter's record; its lock says that the memory is in use here */
    void *mapped;              /* mapping to undo */
    uint64_t mapped_bytes;     /* its size */
};

/* Makes an offer; null when the host refuses the file for it. */
struct share *share_open(const struct share_offer *offer);

/* What another process imports by: a number that is never 0, and the same as text. */
uint64_t share_token(const struct share *share);
void share_text(uint64_t token, char text[SHARE_TEXT_BYTES]);
bool share_parse(const char *text, uint64_t *token);

/* Address of the block that is offered; 0: a handle. */
uint64_t share_owner(const struct share *share);

/* Whether the offer ended and lives on only because a process uses the memory. */
bool share_ended(const struct share *share);

/* The offer of this process with that token, or null. */
struct share *share_find(uint64_t token);

/* Lets further processes import; false when the host is out of memory. */
bool share_allow(struct share *share, const int32_t *pids, size_t count);

/* Ends an offer: nobody can import any more. False when a process still uses the memory; the offer then stays. */
bool share_end(struct share *share);

/* The same whoever uses the memory; they keep it, as its file stays theirs. */
void share_drop(struct share *share);

/* Offers of this process. */
uint64_t shares_count(void);

/* Maps memory that another process offers. Returns a code; a refusal is recorded. */
int import_open(uint64_t token, struct import **out);

/* Takes it away again; nothing accesses it any more. */
void import_close(struct import *import);

/* Imports of this process. */
uint64_t imports_count(void);

#endif
