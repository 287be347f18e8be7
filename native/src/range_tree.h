/* Ordered set of address ranges that do not overlap; see range_tree.c. */
#ifndef HOSTACL_RANGE_TREE_H
#define HOSTACL_RANGE_TREE_H

#include <stddef.h>
#include <stdint.h>

/* One range; embedded as the first member of what it describes. */
struct range {
    uint64_t start;      /* first address */
    uint64_t len;        /* bytes; start + len does not pass 2^64 - 1 */
    uint64_t max_len;    /* longest range in this subtree */
    struct range *left;  /* ranges below */
    struct range *right; /* ranges above */
    uint32_t rank;       /* random heap key that keeps the tree shallow */
};

struct range_tree {
    struct range *root; /* null when empty */
    size_t count;       /* ranges in the tree */
};

/* Adds a range whose start and len are set and which overlaps no other. */
void range_tree_insert(struct range_tree *tree, struct range *range);

/* Takes out a range that is in the tree. */
void range_tree_remove(struct range_tree *tree, struct range *range);

/* The range that holds addr, or null. */
struct range *range_tree_at(const struct range_tree *tree, uint64_t addr);

/* The last range that starts at or below addr, or null. */
struct range *range_tree_floor(const struct range_tree *tree, uint64_t addr);

/* The first range that starts at or above addr, or null. */
struct range *range_tree_ceil(const struct range_tree *tree, uint64_t addr);

/* The lowest range with len bytes free at a multiple of align, at or above from; the place goes to *where. */
struct range *range_tree_fit(const struct range_tree *tree, uint64_t from, uint64_t len, uint64_t align,
                             uint64_t *where);

#endif
