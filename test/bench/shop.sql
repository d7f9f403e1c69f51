-- test/bench/shop.sql: the tables that plans.sql asks, for test/bench/lib/Plans.pm, which makes the
-- indexes of "indexes on" below, by each access method. :users and the like are numbers of rows.

SELECT setseed(0.42);

CREATE TABLE users (id int NOT NULL, country int NOT NULL, city int NOT NULL, status text NOT NULL, created timestamp NOT NULL, email text NOT NULL, score int NOT NULL);
-- the city says the country
INSERT INTO users SELECT i, city / 20, city, (ARRAY['active', 'active', 'active', 'active', 'idle', 'idle', 'banned', 'new'])[1 + floor(random() * 8)::int],
		'2020-01-01'::timestamp + i * interval '8 min', 'user' || i || '@example.com', (random() * 10000)::int
	FROM (SELECT i, floor(200 * random() ^ 3)::int * 20 + floor(random() * 20)::int AS city FROM generate_series(1, :users) i) c;
-- indexes on users: unique id; country; city; created; unique email; status; score

CREATE TABLE products (id int NOT NULL, category int NOT NULL, brand int NOT NULL, price numeric(10, 2) NOT NULL, name text NOT NULL);
INSERT INTO products SELECT i, floor(random() * 500)::int, floor(random() * 2000)::int, (random() * 1000)::numeric(10, 2), 'product ' || md5(i::text)
	FROM generate_series(1, :products) i;
-- indexes on products: unique id; category; brand; price

-- r is of a million
CREATE TABLE orders (id int NOT NULL, user_id int NOT NULL, created timestamp NOT NULL, shipped timestamp, status int NOT NULL, region int NOT NULL, amount int NOT NULL, r int NOT NULL, note text NOT NULL);
INSERT INTO orders SELECT i, 1 + floor(random() * :users)::int, at, CASE WHEN random() < 0.9 THEN at + random() * interval '10 days' END,
		floor(5 * random() ^ 2)::int, floor(random() * 100)::int, (random() * 100000)::int, floor(random() * 1000000)::int, repeat('x', 20 + (random() * 60)::int)
	FROM (SELECT i, '2022-01-01'::timestamp + i * (interval '520 days' / :orders) AS at FROM generate_series(1, :orders) i) o;
-- indexes on orders: unique id; user_id; created; shipped; status; region; amount; r; user_id, created DESC; region, status; amount where status = 4

CREATE TABLE items (id int NOT NULL, order_id int NOT NULL, product_id int NOT NULL, qty int NOT NULL, price int NOT NULL);
INSERT INTO items SELECT i, least(:orders, 1 + (i * (:orders::float8 / :items))::int + (random() * 20)::int), 1 + floor(random() * :products)::int, 1 + floor(random() * 10)::int, (random() * 10000)::int
	FROM generate_series(1, :items) i;
-- indexes on items: unique id; order_id; product_id

CREATE TABLE upd (id int NOT NULL, val int NOT NULL, grp int NOT NULL);
INSERT INTO upd SELECT i, 0, i % 1000 FROM generate_series(1, :users * 3 / 2) i;
-- indexes on upd: unique id; grp

CREATE TABLE ev (id int NOT NULL, day date NOT NULL, user_id int NOT NULL, kind int NOT NULL, val int NOT NULL) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE ev%s PARTITION OF ev FOR VALUES FROM (%L) TO (%L)', m, '2024-01-01'::date + (m - 1) * 30, '2024-01-01'::date + m * 30) FROM generate_series(1, 8) m \gexec
INSERT INTO ev SELECT i, '2024-01-01'::date + (i::int8 * 240 / (:users * 4))::int, 1 + floor(random() * :users)::int, floor(random() * 50)::int, (random() * 100000)::int
	FROM generate_series(0, :users * 4 - 1) i;
-- indexes on ev: user_id; day; kind
