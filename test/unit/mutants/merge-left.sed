# src/core/bptree/bpt_merge.c: the left leaf is merged whatever its version is
s/!euno_lock_upgrade(&m->left->lock, m->left_place.version)/!euno_lock_acquire(\&m->left->lock, env, NULL)/
