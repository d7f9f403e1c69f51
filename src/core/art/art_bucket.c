/*-------------------------------------------------------------------------
 *
 * art_bucket.c
 *	  Sorted runs of entries (art_node.h).
 *
 * Views and searches may be of a bucket that is being written, or of a private
 * copy; what they say of the former must be validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* Reads a bucket's header. */
void
euno_art_view(const ArtBucket *bucket, ArtView *view)
{
	uint32_t	at;

	view->base = (const uint8_t *) bucket;
	view->size = (uint32_t) bucket->units * 16;
	view->n = euno_load16(&bucket->n);
	view->prefix_len = euno_load16(&bucket->prefix_len);
	view->width = euno_load16(&bucket->width);
	view->torn = false;
	at = ART_BUCKET_HEADER + view->prefix_len;
	if (view->width == 0)
		at = (at + 1) & ~UINT32_C(1);
	view->entries = view->base + at;
	if (view->size > ART_BUCKET_MAX || view->n > ART_BUCKET_ENTRIES ||
		view->prefix_len + view->width > ART_MAX_COMPOSITE ||
		at + (view->width > 0 ? view->n * view->width : 2 * view->n + 2) >
		view->size)
	{
		view->torn = true;
		view->n = view->prefix_len = 0;
	}
}

/* Takes entry i apart; false if that is impossible. */
bool
euno_art_view_item(const ArtView *view, uint32_t i, ArtItem *item)
{
	const uint16_t *offs = (const uint16_t *) (const void *) view->entries;
	uint32_t	from;
	uint32_t	to;
	uint16_t	payload_len;

	item->head = view->base + ART_BUCKET_HEADER;
	item->head_len = (uint16_t) view->prefix_len;
	item->payload_len = 0;
	item->payload = NULL;
	if (view->width > 0)
	{
		item->tail = view->entries + (size_t) i * view->width;
		item->tail_len = (uint16_t) view->width;
		return true;
	}
	from = euno_load16(&offs[i]);
	to = euno_load16(&offs[i + 1]);
	if (from < ART_BUCKET_HEADER || from + 2 > to || to > view->size)
		return false;
	euno_copy_out(&payload_len, view->base + from, 2);
	if (from + 2 + payload_len > to ||
		view->prefix_len + (to - from - 2 - payload_len) > ART_MAX_COMPOSITE)
		return false;
	item->payload_len = payload_len;
	item->tail = view->base + from + 2;
	item->tail_len = (uint16_t) (to - from - 2 - payload_len);
	item->payload = item->tail + item->tail_len;
	return true;
}

/* The sign of (the key's first bytes) - (the bucket's prefix). */
int
euno_art_compare_prefix(const ArtView *view, const ArtKey *key)
{
	uint8_t		prefix[ART_MAX_COMPOSITE];
	uint32_t	n = view->prefix_len < key->len ? view->prefix_len : key->len;
	int			c;

	euno_copy_out(prefix, view->base + ART_BUCKET_HEADER, view->prefix_len);
	c = n > 0 ? memcmp(key->bytes, prefix, n) : 0;
	if (c != 0)
		return c < 0 ? -1 : 1;
	for (uint32_t i = n; i < view->prefix_len; i++)
	{
		if (prefix[i] != 0)
			return -1;
	}
	return 0;
}

/*
 * FIXED: the first bytes of entry i, at most 8, as a number.  The load of a
 * short entry starts in front of it: there is always the bucket's header.
 */
static inline uint64_t
entry_head(const ArtView *view, uint32_t i)
{
	const uint8_t *p = view->entries + (size_t) i * view->width;

	if (view->width >= 8)
		return euno_load_be(p, 8);
	return euno_load_be(p + view->width - 8, 8) &
		((UINT64_C(1) << (8 * view->width)) - 1);
}

/* The sign of (key) - (entry i), of which the prefix is known to be equal. */
static int
compare_entry(ArtView *view, const ArtKey *key, uint64_t head, uint32_t i)
{
	ArtItem		item;

	if (view->width > 0)
	{
		uint64_t	mine = entry_head(view, i);

		if (head != mine)
			return head < mine ? -1 : 1;
		if (view->width <= 8)
			return euno_art_key_compare_bytes(key, view->prefix_len +
											  view->width, NULL, 0);
		return euno_art_key_compare_bytes(key, view->prefix_len + 8,
										  view->entries +
										  (size_t) i * view->width + 8,
										  view->width - 8);
	}
	if (!euno_art_view_item(view, i, &item))
	{
		view->torn = true;
		return -1;
	}
	return euno_art_key_compare_bytes(key, view->prefix_len, item.tail,
									  item.tail_len);
}

/*
 * The number of entries below the key (or bound).  *exact: the next one is
 * the key.
 */
uint32_t
euno_art_search(ArtView *view, const ArtKey *key, bool *exact)
{
	uint32_t	low = 0;
	uint32_t	high = view->n;
	uint64_t	head = 0;
	int			c = euno_art_compare_prefix(view, key);

	*exact = false;
	if (c != 0)
		return c < 0 ? 0 : view->n;
	if (view->width > 0 && view->prefix_len < key->len)
	{
		head = euno_load_be(key->bytes + view->prefix_len, 8);
		if (view->width < 8)
			head >>= 8 * (8 - view->width);
	}
	while (low < high)
	{
		uint32_t	middle = (low + high) / 2;

		c = compare_entry(view, key, head, middle);
		if (c == 0)
		{
			*exact = true;
			return middle;
		}
		if (c > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Puts an entry without payload at its place; false if it does not fit in.
 * The bucket is locked.
 */
bool
euno_art_bucket_insert(ArtBucket *bucket, const ArtView *view, uint32_t at,
					   const ArtKey *key)
{
	uint8_t    *p = (uint8_t *) view->entries + (size_t) at * view->width;

	if (view->width == 0 || key->len != view->prefix_len + view->width ||
		view->n >= ART_BUCKET_ENTRIES ||
		view->entries + (size_t) (view->n + 1) * view->width >
		view->base + view->size || euno_art_compare_prefix(view, key) != 0)
		return false;
	euno_move(p + view->width, p, (size_t) (view->n - at) * view->width);
	euno_copy_in(p, key->bytes + view->prefix_len, view->width);
	euno_store16(&bucket->n, (uint16_t) (view->n + 1));
	return true;
}

/* Takes entry "at" out.  The bucket is locked; it may become empty. */
void
euno_art_bucket_remove(ArtBucket *bucket, const ArtView *view, uint32_t at)
{
	if (view->width > 0)
	{
		uint8_t    *p = (uint8_t *) view->entries + (size_t) at * view->width;

		euno_move(p, p + view->width,
				  (size_t) (view->n - at - 1) * view->width);
	}
	else
	{
		uint16_t   *offs = (uint16_t *) (void *) (uintptr_t) view->entries;
		uint16_t	from = offs[at];
		uint16_t	to = offs[at + 1];
		uint16_t	end = offs[view->n];

		/* the others move to the left, and so do their offsets */
		euno_move((uint8_t *) bucket + from, (uint8_t *) bucket + to,
				  end - to);
		for (uint32_t i = at + 1; i <= view->n; i++)
			euno_store16(&offs[i - 1], (uint16_t) (offs[i] - (to - from)));
		euno_store16(&offs[at], (uint16_t) from);
	}
	euno_store16(&bucket->n, (uint16_t) (view->n - 1));
}

/*
 * The bytes of a bucket for these entries (at least one), and its form; more
 * than ART_BUCKET_MAX if there is no such bucket.
 */
uint32_t
euno_art_encoded_size(const ArtItem *items, uint32_t n, uint32_t *prefix_len,
					  uint32_t *width)
{
	uint32_t	len = euno_art_item_len(&items[0]);
	uint32_t	total = 0;
	bool		fixed = n > 1;

	/* the path that leads to a single entry may be all of it */
	*prefix_len = n > 1 ? euno_art_item_common(&items[0], &items[n - 1]) : len;
	*width = 0;
	if (n > ART_BUCKET_ENTRIES)
		return ART_BUCKET_MAX + 1;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	this = euno_art_item_len(&items[i]);

		if (this != len || items[i].payload_len > 0)
			fixed = false;
		total += 2 + this - *prefix_len + items[i].payload_len;
	}
	if (fixed)
	{
		*width = len - *prefix_len;
		return ART_BUCKET_HEADER + *prefix_len + n * *width;
	}
	return ((ART_BUCKET_HEADER + *prefix_len + 1) & ~UINT32_C(1)) +
		2 * (n + 1) + total;
}

/* What to allocate for so many bytes: some room for more. */
size_t
euno_art_bucket_room(uint32_t size)
{
	uint32_t	step = 16;

	while (size > step * 16)
		step *= 2;
	return (size + step - 1) & ~(size_t) (step - 1);
}

/* Writes everything but the lock and the size to the image. */
void
euno_art_encode(const ArtItem *items, uint32_t n, uint32_t prefix_len,
				uint32_t width, ArtImage *image)
{
	uint32_t	at = ART_BUCKET_HEADER + prefix_len;
	uint16_t   *offs;

	image->bucket.n = (uint16_t) n;
	image->bucket.prefix_len = (uint16_t) prefix_len;
	image->bucket.width = (uint16_t) width;
	euno_art_item_copy(&items[0], 0, prefix_len,
					   image->bytes + ART_BUCKET_HEADER);
	if (width > 0)
	{
		for (uint32_t i = 0; i < n; i++, at += width)
			euno_art_item_copy(&items[i], prefix_len, prefix_len + width,
							   image->bytes + at);
		return;
	}
	at = (at + 1) & ~UINT32_C(1);
	offs = (uint16_t *) (void *) (image->bytes + at);
	at += 2 * (n + 1);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	len = euno_art_item_len(&items[i]);

		offs[i] = (uint16_t) at;
		memcpy(image->bytes + at, &items[i].payload_len, 2);
		at += 2;
		euno_art_item_copy(&items[i], prefix_len, len, image->bytes + at);
		at += len - prefix_len;
		if (items[i].payload_len > 0)
			memcpy(image->bytes + at, items[i].payload, items[i].payload_len);
		at += items[i].payload_len;
	}
	offs[n] = (uint16_t) at;
}

/*
 * The entries of a private copy, with one more at its place if "extra" is not
 * NULL (an entry that the copy does not have).
 */
void
euno_art_decode(const ArtImage *image, const ArtItem *extra, ArtItems *items)
{
	ArtView		view;

	euno_art_view(&image->bucket, &view);
	items->n = 0;
	for (uint32_t i = 0; i < view.n; i++)
	{
		ArtItem    *item = &items->items[items->n];

		(void) euno_art_view_item(&view, i, item);
		if (extra != NULL && euno_art_item_compare(extra, item) < 0)
		{
			items->items[items->n + 1] = *item;
			*item = *extra;
			extra = NULL;
			items->n++;
		}
		items->n++;
	}
	if (extra != NULL)
		items->items[items->n++] = *extra;
}
