-- test/bench/plans.sql: what an application asks, for test/bench/lib/Plans.pm, a statement a line.
--
-- There, {some users} and the like stand for several conditions each, {users/10} for a part of
-- the number of users, and {100 of users} for as many of their numbers, in no order.

-- Joins
SELECT count(*), sum(o.amount) FROM users u JOIN orders o ON o.user_id = u.id WHERE {some users};
SELECT count(*) FROM users u JOIN orders o ON o.user_id = u.id WHERE {some users};
SELECT count(*) FROM users u WHERE {some users} AND EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 4);
SELECT count(*) FROM users u WHERE {some users} AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id);
SELECT count(*), sum(u.score) FROM orders o JOIN users u ON u.id = o.user_id WHERE {some orders};
SELECT count(*), sum(i.qty) FROM orders o JOIN items i ON i.order_id = o.id WHERE {some orders};
SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id WHERE {some orders};
SELECT count(*) FROM users u WHERE u.id IN (SELECT o.user_id FROM orders o WHERE {some orders});
SELECT count(*) FROM orders o WHERE {some orders} AND EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id);
SELECT count(*) FROM orders o WHERE {some orders} AND NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.qty > 5);
SELECT count(*), sum(i.price) FROM users u JOIN orders o ON o.user_id = u.id JOIN items i ON i.order_id = o.id WHERE {few users};
SELECT p.category, count(*), sum(i.price) FROM users u JOIN orders o ON o.user_id = u.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id WHERE {few users} GROUP BY 1;
SELECT count(*), sum(i.price) FROM products p JOIN items i ON i.product_id = p.id JOIN orders o ON o.id = i.order_id WHERE p.category = 42;
SELECT count(*), sum(i.price) FROM products p JOIN items i ON i.product_id = p.id JOIN orders o ON o.id = i.order_id JOIN users u ON u.id = o.user_id WHERE p.category < 20 AND u.country = 10;
SELECT count(*), sum(i.price) FROM products p JOIN items i ON i.product_id = p.id WHERE p.category < 10;
SELECT count(*), sum(i.price) FROM products p JOIN items i ON i.product_id = p.id WHERE p.category < 50;
SELECT count(*) FROM products p JOIN items i ON i.product_id = p.id WHERE p.category = 7 AND p.brand < 100;
SELECT count(*), sum(o.amount) FROM users u JOIN orders o ON o.user_id = u.id WHERE u.country = 150 AND u.city = 3005;
SELECT count(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.id IS NULL AND u.score < 500;
SELECT u.id, count(o.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.score BETWEEN 100 AND 110 GROUP BY u.id;
SELECT count(*), sum(l.amount) FROM users u LEFT JOIN LATERAL (SELECT amount FROM orders o WHERE o.user_id = u.id ORDER BY o.created DESC LIMIT 3) l ON TRUE WHERE u.score < 20;
SELECT count(*), sum(l.amount) FROM users u LEFT JOIN LATERAL (SELECT amount FROM orders o WHERE o.user_id = u.id ORDER BY o.created DESC LIMIT 3) l ON TRUE WHERE u.score < 500;
SELECT count(*), sum(l.m) FROM users u LEFT JOIN LATERAL (SELECT max(amount) m FROM orders o WHERE o.user_id = u.id) l ON TRUE WHERE u.score < 100;
SELECT sum((SELECT count(*) FROM orders o WHERE o.user_id = u.id)) FROM users u WHERE u.score < 100;
SELECT count(*) FROM products p CROSS JOIN LATERAL (SELECT 1 FROM items i WHERE i.product_id = p.id ORDER BY i.price DESC LIMIT 5) l WHERE p.category < 5;
SELECT count(*), sum(p.price) FROM items i JOIN products p ON p.id = i.product_id WHERE i.order_id < {orders/75};
SELECT count(*), sum(u.score) FROM orders o JOIN users u ON u.id = o.user_id WHERE o.user_id < {users/400};
SELECT count(*), sum(p.price) FROM items i JOIN products p ON p.id = i.product_id WHERE i.product_id < 300;
SELECT count(*) FROM orders o JOIN LATERAL (SELECT 1 FROM users u WHERE u.country = o.region AND u.status = 'new' LIMIT 1) x ON TRUE WHERE o.r < 10000;
SELECT count(*) FROM orders a JOIN orders b ON b.user_id = a.user_id AND b.created > a.created WHERE a.r < 2000;
SELECT count(*) FROM (SELECT * FROM orders WHERE r < 100) a JOIN LATERAL (SELECT 1 FROM orders b WHERE b.created BETWEEN a.created AND a.created + interval '1 hour') x ON TRUE;
SELECT count(*) FROM users WHERE score < 500 AND id NOT IN (SELECT user_id FROM orders WHERE r < 20000);
SELECT sum(amount) FROM (SELECT amount FROM orders WHERE user_id < {users/200} UNION ALL SELECT amount FROM orders WHERE r < 1000) s;

-- The first rows in some order
SELECT o.*, u.email FROM orders o JOIN users u ON u.id = o.user_id ORDER BY o.created DESC LIMIT 20;
SELECT o.*, u.email FROM orders o JOIN users u ON u.id = o.user_id WHERE u.status = 'banned' ORDER BY o.created DESC LIMIT 20;
SELECT o.*, u.email FROM orders o JOIN users u ON u.id = o.user_id WHERE u.country = 199 ORDER BY o.created DESC LIMIT 20;
SELECT o.*, u.email FROM orders o JOIN users u ON u.id = o.user_id WHERE o.region = 5 ORDER BY o.created DESC LIMIT 20;
SELECT * FROM orders WHERE region = 7 ORDER BY created DESC LIMIT 20;
SELECT * FROM orders WHERE region = 7 AND status = 4 ORDER BY created DESC LIMIT 20;
SELECT * FROM orders WHERE amount < 100 ORDER BY created DESC LIMIT 20;
SELECT * FROM orders WHERE amount < 1000 ORDER BY created DESC LIMIT 20;
SELECT * FROM orders WHERE amount < 10000 ORDER BY created LIMIT 20;
SELECT * FROM orders WHERE region = 7 ORDER BY amount DESC LIMIT 20;
SELECT * FROM orders WHERE status = 4 ORDER BY amount LIMIT 20;
SELECT * FROM orders WHERE user_id = 1234 ORDER BY amount DESC LIMIT 20;
SELECT * FROM orders WHERE user_id = 1234 ORDER BY id DESC LIMIT 5;
SELECT * FROM orders WHERE shipped IS NULL ORDER BY id LIMIT 50;
SELECT * FROM orders WHERE status = 4 ORDER BY id LIMIT 100;
SELECT * FROM orders WHERE user_id BETWEEN 100 AND 300 ORDER BY created DESC LIMIT 10;
SELECT * FROM orders WHERE user_id = 1234 ORDER BY created DESC LIMIT 10;
SELECT * FROM orders ORDER BY region, created LIMIT 20;
SELECT * FROM orders ORDER BY user_id, amount LIMIT 100;
SELECT * FROM orders WHERE user_id < {users/100} ORDER BY user_id, amount;
SELECT * FROM orders WHERE region < 3 ORDER BY region, status, amount LIMIT 100;
SELECT * FROM orders ORDER BY created OFFSET 50000 LIMIT 20;
SELECT * FROM orders ORDER BY r OFFSET 20000 LIMIT 20;
SELECT * FROM orders WHERE r < 15000 ORDER BY r;
SELECT id, amount, r FROM orders WHERE r < 15000 ORDER BY amount;
SELECT * FROM orders WHERE created BETWEEN '2022-06-01' AND '2022-07-01' ORDER BY amount LIMIT 10;

-- Groups, distinct values, windows
SELECT status, count(*) FROM orders GROUP BY status;
SELECT region, count(*) FROM orders GROUP BY region;
SELECT region, sum(amount) FROM orders GROUP BY region;
SELECT region, status, count(*) FROM orders GROUP BY region, status;
SELECT user_id, count(*) FROM orders GROUP BY user_id;
SELECT user_id, max(created) FROM orders GROUP BY user_id;
SELECT user_id, sum(amount) FROM orders GROUP BY user_id;
SELECT user_id, count(*) FROM orders GROUP BY user_id ORDER BY user_id LIMIT 50;
SELECT user_id, count(*), sum(amount) FROM orders WHERE user_id < {users/40} GROUP BY user_id;
SELECT user_id, count(*) c FROM orders GROUP BY user_id ORDER BY c DESC LIMIT 10;
SELECT region, count(*) FROM orders WHERE r < 15000 GROUP BY region;
SELECT product_id, sum(qty) FROM items GROUP BY product_id;
SELECT order_id, sum(qty) FROM items GROUP BY order_id ORDER BY order_id LIMIT 100;
SELECT country, city, count(*) FROM users GROUP BY country, city;
SELECT date_trunc('day', created), count(*) FROM orders WHERE created >= '2023-05-01' GROUP BY 1;
SELECT DISTINCT region FROM orders;
SELECT DISTINCT user_id FROM orders;
SELECT DISTINCT region, status FROM orders;
SELECT count(DISTINCT product_id) FROM items;
SELECT count(DISTINCT user_id) FROM orders WHERE r < 30000;
SELECT DISTINCT ON (user_id) * FROM orders WHERE user_id < {users/66} ORDER BY user_id, created DESC;
SELECT DISTINCT ON (user_id) user_id, created FROM orders ORDER BY user_id, created DESC;
SELECT DISTINCT ON (user_id) * FROM orders ORDER BY user_id, created DESC LIMIT 100;
SELECT DISTINCT ON (region) * FROM orders ORDER BY region, created DESC;
SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY user_id ORDER BY created DESC) rn FROM orders) s WHERE rn = 1;
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY created DESC) rn FROM orders WHERE user_id < {users/100}) s WHERE rn <= 2;
SELECT id, sum(amount) OVER (ORDER BY created) FROM orders WHERE created > '2023-05-01';
SELECT sum(d) FROM (SELECT extract(epoch FROM created - lag(created) OVER (PARTITION BY user_id ORDER BY created)) d FROM orders WHERE user_id < {users/20}) s;
SELECT id, rank() OVER (ORDER BY amount) FROM orders LIMIT 100;
SELECT min(created), max(created) FROM orders;
SELECT max(amount) FROM orders WHERE region = 7;
SELECT max(created) FROM orders WHERE user_id = 555;
SELECT min(id) FROM orders WHERE status = 4;
SELECT min(r) FROM orders WHERE amount < 50;

-- Conditions that some of the rows meet
SELECT count(*) FROM orders WHERE {share};
SELECT sum(amount) FROM orders WHERE {share};
SELECT count(*) FROM orders WHERE {share} AND status = 3;
SELECT count(*) FROM orders WHERE created < {date};
SELECT sum(amount) FROM orders WHERE created < {date};
SELECT sum(amount) FROM orders WHERE shipped < {date};
SELECT count(*) FROM orders;
SELECT count(*) FROM items;
SELECT count(*) FROM orders WHERE status = 4;
SELECT sum(amount) FROM orders WHERE status = 4;
SELECT sum(amount) FROM orders WHERE status = 3;
SELECT sum(amount) FROM orders WHERE region = 5;
SELECT sum(amount) FROM orders WHERE region < 10;
SELECT sum(amount) FROM orders WHERE region = 5 AND status = 4;
SELECT count(*) FROM orders WHERE created > '2022-06-01' AND user_id < {users/10};
SELECT count(*) FROM orders WHERE created > '2023-03-01' AND user_id < {users/3};
SELECT user_id, count(*) FROM orders WHERE created > '2023-03-01' AND user_id < {users/3} GROUP BY 1;
SELECT max(user_id) FROM orders WHERE created > '2023-05-30';
SELECT count(*) FROM orders WHERE status = 4 AND region < 50;
SELECT sum(amount) FROM orders WHERE status = 4 AND region < 5;
SELECT count(*), sum(amount) FROM orders WHERE user_id = 77 OR r = 77;
SELECT count(*), sum(amount) FROM orders WHERE r < 5000 OR amount < 500;
SELECT sum(amount) FROM orders WHERE r < 20000 OR amount < 2000;
SELECT * FROM orders WHERE id = 5 OR user_id = 5 OR r = 5;
SELECT sum(id) FROM orders WHERE r < 20000 AND amount < 2000;
SELECT sum(id) FROM orders WHERE r < 100000 AND amount < 5000;
SELECT sum(id) FROM orders WHERE region = 5 AND amount < 2000;
SELECT sum(amount) FROM orders WHERE region = 5 AND created > '2023-05-01';
SELECT sum(amount) FROM orders WHERE created > '2023-03-01' AND shipped < '2023-03-05';
SELECT sum(id) FROM orders WHERE user_id < {users/100} AND r < 50000;
SELECT count(*) FROM users WHERE country = 3 AND status = 'new' AND score < 1000;
SELECT sum(length(email)) FROM users WHERE city = 65 AND country = 3;

-- Lists
SELECT sum(amount) FROM orders WHERE id IN ({10 of orders});
SELECT sum(amount) FROM orders WHERE user_id IN ({10 of users});
SELECT sum(amount) FROM orders WHERE id IN ({1000 of orders});
SELECT sum(amount) FROM orders WHERE user_id IN ({1000 of users});
SELECT sum(amount) FROM orders WHERE user_id IN ({100 of users});
SELECT sum(amount) FROM orders WHERE id IN ({5000 of orders});
SELECT count(*) FROM orders WHERE user_id IN ({1000 of users});
SELECT * FROM orders WHERE user_id IN ({100 of users}) ORDER BY created DESC LIMIT 20;
SELECT sum(amount) FROM orders WHERE region IN (1, 3, 5);
SELECT count(*) FROM orders WHERE status IN (3, 4);
SELECT count(*), sum(i.price) FROM orders o JOIN items i ON i.order_id = o.id WHERE o.user_id IN ({100 of users});
SELECT count(*) FROM orders WHERE user_id IN ({100 of users}) AND created > '2023-01-01';

-- A partial index
SELECT sum(id) FROM orders WHERE status = 4 AND amount < 1000;
SELECT count(*) FROM orders WHERE status = 4 AND amount BETWEEN 5000 AND 20000;
SELECT sum(id) FROM orders WHERE status = 4 AND amount < 50000;
SELECT * FROM orders WHERE status = 4 ORDER BY amount DESC LIMIT 20;

-- Joins of what both indexes have in order
SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id;
SELECT count(*), sum(i.qty) FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id < {orders/5};
SELECT count(*) FROM users u JOIN orders o ON o.user_id = u.id;
SELECT o.id, i.id FROM orders o JOIN items i ON i.order_id = o.id ORDER BY o.id LIMIT 1000;
SELECT u.email, o.id FROM users u JOIN orders o ON o.user_id = u.id ORDER BY u.id LIMIT 5000;
SELECT count(*) FROM (SELECT u.id, sum(amount) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.id) s;
SELECT u.id, sum(amount) FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < {users/10} GROUP BY u.id;

-- A partitioned table
SELECT * FROM ev WHERE user_id = 55;
SELECT sum(val) FROM ev WHERE day = '2024-03-05';
SELECT count(*), sum(val) FROM ev WHERE day BETWEEN '2024-03-05' AND '2024-03-25';
SELECT sum(val) FROM ev WHERE kind = 3;
SELECT count(*) FROM ev WHERE kind = 3;
SELECT * FROM ev ORDER BY day DESC LIMIT 20;
SELECT * FROM ev WHERE user_id < {users/4000} ORDER BY day DESC LIMIT 10;
SELECT count(*), sum(e.val) FROM users u JOIN ev e ON e.user_id = u.id WHERE u.score < 50;
SELECT count(*), sum(e.val) FROM users u JOIN ev e ON e.user_id = u.id WHERE u.score < 1000;
SELECT day, count(*) FROM ev GROUP BY day;
SELECT count(*) FROM users u WHERE u.score < 500 AND EXISTS (SELECT 1 FROM ev WHERE ev.user_id = u.id);
SELECT max(day) FROM ev;
SELECT * FROM ev ORDER BY user_id LIMIT 50;

-- Statements that write; they are rolled back
UPDATE upd SET val = o.amount FROM orders o WHERE o.id = upd.id AND upd.grp = 7;
UPDATE upd SET val = o.amount FROM orders o WHERE o.id = upd.id AND upd.grp < 100;
DELETE FROM upd USING orders o WHERE o.id = upd.id AND o.r < 10000 AND o.id < {orders/5};
DELETE FROM upd WHERE grp IN (5, 6);
UPDATE upd SET val = val + 1 WHERE id BETWEEN 1000 AND 4000;
UPDATE upd SET val = 1 WHERE id IN (SELECT order_id FROM items WHERE product_id BETWEEN 100 AND 200);
DELETE FROM upd WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = upd.id AND u.country = 150);
