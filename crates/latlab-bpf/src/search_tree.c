// The search trees that libelf.a of elfutils 0.192 calls and lacks: those of the C library. A tree begins with its
// root; what follows, a lock, is not used by programs that give each thread descriptors of its own.

#define _GNU_SOURCE
#include <search.h>
#include <stddef.h>

struct search_tree {
	void *root;
};

typedef int compare(const void *, const void *);

void eu_search_tree_init(struct search_tree *tree)
{
	tree->root = NULL;
}

void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

void *eu_tsearch(const void *key, struct search_tree *tree, compare *compared)
{
	return tsearch(key, &tree->root, compared);
}

void *eu_tdelete(const void *key, struct search_tree *tree, compare *compared)
{
	return tdelete(key, &tree->root, compared);
}
