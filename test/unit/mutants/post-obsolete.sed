# src/core/bptree/bpt_directory.c: a leaf is posted that has been taken in
/^euno_bpt_post/,/^}/s/if (euno_load64_acquire(&leaf->lock.word) & EUNO_LOCK_OBSOLETE)/if (0)/
