/* Ordered set of ranges: a treap keyed by the start address that also knows the longest range of each subtree.
 *
 * One structure serves every table of the runtime: blocks and regions (find the one that holds an address), free
 * address space and free pieces of a heap (find the lowest place that fits). All operations take O(log n); a fit whose
 * alignment spoils candidates may look at a few more. The nodes belong to the caller, so nothing here allocates or
 * fails.
 *
 * Thread safety: none of its own; callers hold the table lock. */
#include "range_tree.h"

#include <stdbool.h>

static uint64_t longest(const struct range *node) {
    return node ? node->max_len : 0;
}

static void refresh(struct range *node) {
    uint64_t len = node->len;
    if (longest(node->left) > len)
        len = longest(node->left);
    if (longest(node->right) > len)
        len = longest(node->right);
    node->max_len = len;
}

/* Rank of a range: a hash of its start, as good as random for the shape of the tree. */
static uint32_t rank_of(uint64_t start) {
    uint64_t x = start * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

/* Cuts a subtree into the ranges below key and those at or above it. */
static void split(struct range *node, uint64_t key, struct range **below, struct range **above) {
    if (!node) {
        *below = *above = NULL;
    } else if (node->start < key) {
        split(node->right, key, &node->right, above);
        *below = node;
        refresh(node);
    } else {
        split(node->left, key, below, &node->left);
        *above = node;
        refresh(node);
    }
}

static struct range *merge(struct range *below, struct range *above) {
    if (!below || !above)
        return below ? below : above;
    if (below->rank > above->rank) {
        below->right = merge(below->right, above);
        refresh(below);
        return below;
    }
    above->left = merge(below, above->left);
    refresh(above);
    return above;
}

/* Takes a range out of a subtree; whether the longest range of the subtree may be another one now. */
static bool remove_from(struct range **place, const struct range *range) {
    struct range *node = *place;
    if (node == range) {
        *place = merge(node->left, node->right);
        return true;
    }
    if (!remove_from(range->start < node->start ? &node->left : &node->right, range))
        return false;
    uint64_t before = node->max_len;
    refresh(node);
    return node->max_len != before;
}

/* The way down touches the nodes on it and no others, so that a large tree costs few cache misses. */
void range_tree_insert(struct range_tree *tree, struct range *range) {
    struct range **place = &tree->root;
    range->rank = rank_of(range->start);
    while (*place && (*place)->rank >= range->rank) {
        struct range *node = *place;
        if (node->max_len < range->len)
            node->max_len = range->len;
        place = range->start < node->start ? &node->left : &node->right;
    }
    split(*place, range->start, &range->left, &range->right);
    refresh(range);
    *place = range;
    tree->count++;
}

void range_tree_remove(struct range_tree *tree, struct range *range) {
    (void)remove_from(&tree->root, range);
    tree->count--;
}

struct range *range_tree_floor(const struct range_tree *tree, uint64_t addr) {
    struct range *best = NULL;
    for (struct range *node = tree->root; node;) {
        if (node->start <= addr) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

struct range *range_tree_ceil(const struct range_tree *tree, uint64_t addr) {
    struct range *best = NULL;
    for (struct range *node = tree->root; node;) {
        if (node->start >= addr) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

struct range *range_tree_at(const struct range_tree *tree, uint64_t addr) {
    struct range *range = range_tree_floor(tree, addr);
    return range && addr - range->start < range->len ? range : NULL;
}

/* Whether len bytes fit into the range at a multiple of align (a power of two), at or above from. */
static bool fits(const struct range *range, uint64_t from, uint64_t len, uint64_t align, uint64_t *where) {
    uint64_t at = from > range->start ? from : range->start;
    uint64_t rounded = (at + align - 1) & ~(align - 1);
    if (rounded < at)
        return false;
    uint64_t skipped = rounded - range->start;
    *where = rounded;
    return skipped <= range->len && range->len - skipped >= len;
}

static struct range *fit(struct range *node, uint64_t from, uint64_t len, uint64_t align, uint64_t *where) {
    if (longest(node) < len || !node)
        return NULL;
    if (node->start > from) {
        struct range *lower = fit(node->left, from, len, align, where);
        if (lower)
            return lower;
    }
    if (fits(node, from, len, align, where))
        return node;
    return fit(node->right, from, len, align, where);
}

struct range *range_tree_fit(const struct range_tree *tree, uint64_t from, uint64_t len, uint64_t align,
                             uint64_t *where) {
    return fit(tree->root, from, len, align, where);
}
