-- projections, filters, names
SELECT a, b FROM r
SELECT * FROM r
SELECT `my col` + 1 AS `a b`, `my col` FROM r WHERE `my col` IS NOT NULL
SELECT a AS `left`, b AS `select` FROM r
SELECT A, B AS Upper FROM R WHERE a > 1 OR b = 'x'
SELECT * FROM r WHERE NOT (a = 1 AND b <> 'x')
SELECT a <=> NULL AS p, a IN (1, 2, NULL) AS q, a NOT IN (1) AS z, a BETWEEN 1 AND 2 AS w FROM r
SELECT big > 15 AS p, big + 1 AS q, n > 1 AS s, x > 1 AS t, big * 2 - 1 AS u FROM r
SELECT 1 AS a, 'it''s \\ "q"' AS b, NULL AS c, TRUE AS d, 5L AS e, 1.50 AS f, 1e3 AS g, DATE '2020-01-01' AS h
SELECT 1Y AS a, 2S AS b, -3 AS c, -2147483648 AS d, CAST(NULL AS INT) AS e, X'0A' AS f, 1.5F AS g
SELECT TIMESTAMP '2020-01-01 10:00:00' AS a, TIMESTAMP_NTZ '2020-01-01 10:00:00' AS b, INTERVAL 1 DAY AS c
SELECT a FROM r WHERE a > CAST('1' AS INT)
SELECT 'naïve ∸ ✓' AS u, 'new\nline\ttab' AS nl, '' AS em FROM r
-- expressions
SELECT year(d) AS y, extract(MONTH FROM d) AS m, date_trunc('month', d) AS tr, d + INTERVAL 3 MONTHS AS p FROM r
SELECT d - DATE '2020-01-01' AS i, datediff(d, DATE '2020-01-01') AS dd, date_format(d, 'yyyy-MM') AS f FROM r
SELECT n * 2 + 1.5 AS a, n / 3 AS b, n * n AS c, a / 2 AS e, a % 2 AS f, -a AS g, a DIV 2 AS h, n % 2 AS i FROM r
SELECT CAST(a AS STRING) || b AS c, concat(b, '-', a) AS e, b LIKE 'x%' AS l, b RLIKE 'x' AS rl, b ILIKE 'X%' AS il FROM r
SELECT b NOT LIKE 'x%' AS p, (b LIKE 'x%') = (a = 1) AS q, NOT (b LIKE 'x%') AND a = 1 AS z FROM r
SELECT b LIKE 'x\\%' AS p, b LIKE 'x|%' ESCAPE '|' AS q FROM r
SELECT substring(b, 1, 2) AS s, upper(b) AS u, length(b) AS l, trim(b) AS t, replace(b, 'x', 'z') AS z, left(b, 1) AS lf FROM r
SELECT startswith(b, 'x') AS p, contains(b, 'y') AS q, position('y' IN b) AS s, split(b, '')[0] AS t FROM r
SELECT CASE WHEN a = 1 THEN 'one' WHEN b = 'y' THEN b END AS c, CASE a WHEN 1 THEN 2 ELSE 3 END AS e FROM r
SELECT if(a > 1, n, 0) AS i, coalesce(a, big, 0) AS c, nvl(b, 'none') AS v, nullif(a, 1) AS nf, ifnull(a, 7) AS g FROM r
SELECT nvl2(a, b, 'z') AS v, zeroifnull(a) AS z, greatest(a, 2) AS g, least(a, big) AS l, decode(a, 1, 'p', 'q') AS dc FROM r
SELECT try_add(a, 1) AS t, try_divide(a, 0) AS u, TRY_CAST(b AS INT) AS c, try_to_number(b, '9') AS tn FROM r
SELECT round(n, 1) AS a, ceil(n) AS b, floor(x) AS c, abs(a) AS e, sqrt(x + 5) AS f, power(a, 2) AS g, sign(n) AS h FROM r
SELECT arr[0] AS a0, m['k'] AS mk, st.u AS u, st.`v w` AS vw, size(arr) AS sz, element_at(m, 'z') AS ez FROM r WHERE size(arr) > 0
SELECT transform(arr, e -> e + a) AS t, filter(arr, e -> e > 1) AS f, aggregate(arr, 0, (acc, e) -> acc + e) AS g FROM r
SELECT transform(arr, (e, i) -> e * i) AS t, exists(arr, e -> e = 2) AS ex, array_sort(arr) AS so, sort_array(arr) AS sa FROM r
SELECT transform(arr, e -> transform(arr, f -> e + f)) AS t, map_filter(m, (k, v) -> v > 1) AS mf FROM r
SELECT struct(a, b) AS s, named_struct('p', a, 'q r', b) AS ns, array(a, big) AS ar, map('a', a) AS ma FROM r
SELECT to_json(struct(a, b AS bee)) AS j, from_json('{"z": 1}', 'z INT').z AS z, to_json(st, map('ignoreNullFields', 'false')) AS k FROM r
SELECT from_csv('1,2', 'p INT, q INT', map('sep', ',')) AS c, get_json_object(b, '$.a') AS g FROM r
SELECT to_date(b, 'yyyy') AS p FROM r WHERE b IS NULL
SELECT t + INTERVAL 1 HOUR AS p, hour(t) AS h, unix_timestamp(t) AS u, CAST(t AS DATE) AS c, timestampdiff(DAY, t, t) AS td FROM r
SELECT md5(b) AS m, hash(a, b) AS h, sha2(b, 256) AS s, hex(b) AS hx, regexp_replace(b, '(x)', '[$1]') AS rr FROM r
SELECT regexp_extract(b, '(x)(y)?', 1) AS e, regexp_count(b, 'x') AS c, b COLLATE UTF8_LCASE = 'X' AS co FROM r
SELECT a IS NULL AS p, b IS NOT NULL AS q, isnan(x) AS s, a IS DISTINCT FROM 1 AS w, (a > 1) IS TRUE AS tr FROM r
SELECT typeof(a) AS p, CAST(n AS DECIMAL(10,1)) AS q, CAST(a AS BIGINT) AS s, n::double AS w, CAST(b AS BINARY) AS bi FROM r
SELECT a & 1 AS p, a | 4 AS q, a ^ 1 AS s, ~a AS w, shiftleft(a, 2) AS sl FROM r
SELECT width_bucket(x, 0, 10, 5) AS w, format_number(n, 1) AS f, lpad(b, 5, '*') AS l, initcap(b) AS i FROM r
SELECT overlay(b PLACING 'q' FROM 1) AS o, ltrim(b) AS lt, trim(BOTH 'x' FROM b) AS tb, translate(b, 'x', 'k') AS tl FROM r
SELECT make_date(2020, a, 1) AS md, add_months(d, a) AS am, last_day(d) AS ld, next_day(d, 'Mon') AS nd, weekday(d) AS wd FROM r
-- joins
SELECT r.a, b, c FROM r JOIN s ON r.a = s.a
SELECT r.a, b, c FROM r JOIN s ON r.a <=> s.a AND s.c > 5
SELECT r.a, s.a AS sa FROM r CROSS JOIN s
SELECT r.a, s.a AS sa FROM r, s WHERE r.a < s.a
SELECT r.a, b, c FROM r LEFT JOIN s ON r.a = s.a AND b = 'x'
SELECT r.a, s.a AS sa, c FROM r RIGHT JOIN s ON r.a = s.a
SELECT r.a, s.a AS sa, c FROM r FULL JOIN s ON r.a = s.a
SELECT a, b, c FROM r FULL JOIN s USING (a)
SELECT a, b, c FROM r NATURAL JOIN s
SELECT a, b, c FROM r LEFT JOIN s USING (a)
SELECT a, b FROM r LEFT SEMI JOIN s ON r.a = s.a
SELECT a, b FROM r LEFT ANTI JOIN s ON r.a = s.a
SELECT p.a, q.a AS qa FROM r p JOIN r q ON p.a = q.a AND p.b < q.b
SELECT p.a, q.a AS qa, z.c FROM r p JOIN r q ON p.a = q.a LEFT JOIN s z ON z.a = q.a + 1
SELECT /*+ BROADCAST(s) */ r.a, c FROM r JOIN s ON r.a = s.a
SELECT r.a, c FROM r LEFT JOIN s ON r.a = s.a AND s.c > (SELECT min(c) FROM s)
-- set operators
SELECT a FROM r UNION ALL SELECT a FROM s
SELECT a FROM r UNION SELECT a FROM s
SELECT a, b FROM r UNION ALL SELECT c, e FROM s
SELECT a FROM r EXCEPT ALL SELECT a FROM s
SELECT a FROM r EXCEPT SELECT a FROM s
SELECT a FROM r INTERSECT ALL SELECT a FROM s
SELECT a FROM r INTERSECT SELECT a FROM s
SELECT DISTINCT a, b FROM r
SELECT a FROM r UNION ALL SELECT a FROM r UNION ALL SELECT a FROM r
SELECT a, n FROM r UNION ALL SELECT 1, 2.125
-- grouping
SELECT a, count(*) AS n, count(b) AS nb, sum(n) AS sn, avg(x) AS ax, min(b) AS mi, max(d) AS ma FROM r GROUP BY a
SELECT count(*) AS n, sum(a) AS s, avg(n) AS av FROM r
SELECT count(*) AS n, sum(a) AS s FROM r WHERE a > 100
SELECT year(d) AS y, count(*) AS n FROM r GROUP BY year(d)
SELECT year(d) + 1 AS y, count(*) + max(a) AS n FROM r GROUP BY year(d)
SELECT year(d) AS y, a % 2 AS p, sum(n * 2) AS s FROM r GROUP BY ALL
SELECT a, sum(n) AS s FROM r GROUP BY 1 HAVING count(*) > 1
SELECT a FROM r GROUP BY a
SELECT a, a AS again FROM r GROUP BY a, a
SELECT 'k' AS k, count(*) AS n FROM r GROUP BY 'k'
SELECT 'k' AS k, count(*) AS n FROM r WHERE a > 100 GROUP BY 'k'
SELECT a, count(DISTINCT b) AS c, sum(DISTINCT n) AS s, count(DISTINCT b, d) AS c2, count(a, b) AS c3 FROM r GROUP BY a
SELECT a, count(*) FILTER (WHERE b = 'x') AS c, sum(n) FILTER (WHERE n > 0) AS s, count(DISTINCT b) FILTER (WHERE n > 0) AS cd FROM r GROUP BY a
SELECT a, bool_and(n > 1) AS p, any(n > 1) AS q, count_if(n > 1) AS c, every(b = 'x') AS e FROM r GROUP BY a
SELECT a, var_pop(x) AS v, var_samp(a) AS w, stddev(n) AS s, stddev_pop(x) AS sp, variance(x) AS va FROM r GROUP BY a
SELECT b, percentile(a, 0.5) AS p, max_by(a, n) AS mb, covar_pop(x, a) AS c, median(x) AS me, approx_count_distinct(a, 0.01) AS ap FROM r GROUP BY b
SELECT a, sort_array(collect_list(b)) AS l, size(collect_set(b)) AS s, first(b, true) IS NULL AS f, any_value(a) AS av FROM r GROUP BY a
SELECT a, listagg(b, ',') WITHIN GROUP (ORDER BY b) AS l, percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) AS p FROM r GROUP BY a
SELECT a, mode() WITHIN GROUP (ORDER BY c) AS lo, mode() WITHIN GROUP (ORDER BY c DESC) AS hi, mode(c, true) AS d FROM s GROUP BY a
SELECT a, try_sum(n) AS t, kurtosis(x) AS k, regr_count(x, a) AS rc, bit_or(a) AS bo, histogram_numeric(a, 2) AS hn FROM r GROUP BY a
SELECT a, sum(n) / count(*) AS q, CASE WHEN sum(n) > 1 THEN 'big' ELSE b END AS w FROM r GROUP BY a, b
SELECT a, b, grouping(a) AS ga, grouping_id() AS gid, sum(n) AS s FROM r GROUP BY ROLLUP (a, b)
SELECT a, b, count(*) AS c FROM r GROUP BY CUBE (a, b) HAVING count(*) > 1
SELECT a, b, count(*) AS c FROM r GROUP BY GROUPING SETS ((a), (b), ())
SELECT a, year(d) AS y, count(*) AS c FROM r GROUP BY a, ROLLUP (year(d))
SELECT window(t, '1 hour').start AS w, count(*) AS c FROM r GROUP BY window(t, '1 hour')
SELECT window.start AS ws, count(*) AS c FROM r GROUP BY window(t, '10 minutes', '5 minutes')
SELECT a, max(struct(n, b)) AS mx FROM r GROUP BY a
SELECT big, st.u AS u, sum(st.u) AS su FROM r GROUP BY big, st.u
-- windows
SELECT a, b, rank() OVER (PARTITION BY a ORDER BY n DESC) AS rk, dense_rank() OVER (PARTITION BY a ORDER BY n) AS dr FROM r
SELECT a, row_number() OVER (PARTITION BY a + 1 ORDER BY n, b) AS rn, sum(n) OVER () AS s FROM r
SELECT a, sum(n) OVER (PARTITION BY b ORDER BY d, a, n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM r
SELECT a, sum(n) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW) AS c FROM r
SELECT a, lag(n) OVER (PARTITION BY a ORDER BY n) AS l, lead(n, 2, 0) OVER (PARTITION BY a ORDER BY n) AS f, lag(b, 1) IGNORE NULLS OVER (ORDER BY n) IS NULL AS li FROM r
SELECT a, ntile(2) OVER (ORDER BY n, a) AS nt, cume_dist() OVER (ORDER BY n) AS cd, percent_rank() OVER (ORDER BY n) AS pr FROM r
SELECT a, first_value(n) OVER (PARTITION BY a ORDER BY n) AS fv, nth_value(n, 2) OVER (PARTITION BY a ORDER BY n) AS nv, last_value(n, true) OVER (PARTITION BY a ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS lv FROM r
SELECT * FROM (SELECT a, b, n, row_number() OVER (PARTITION BY a ORDER BY n DESC, b) AS rn FROM r) WHERE rn = 1
SELECT a, sum(count(*)) OVER (ORDER BY a) AS running FROM r GROUP BY a
SELECT a, b, avg(x) FILTER (WHERE x > 0) OVER (PARTITION BY upper(b)) AS av, count_if(a > 1) OVER () AS ci FROM r
SELECT a, b FROM r QUALIFY row_number() OVER (PARTITION BY a ORDER BY b, n) = 1
-- generators
SELECT a, e FROM r LATERAL VIEW explode(arr) v AS e
SELECT a, e FROM r LATERAL VIEW OUTER explode(arr) v AS e
SELECT a, explode(arr) AS e FROM r
SELECT a, explode_outer(arr) AS e FROM r
SELECT a, p, e FROM r LATERAL VIEW posexplode(arr) v AS p, e
SELECT a, k, v FROM r LATERAL VIEW explode(m) u AS k, v
SELECT a, s.* FROM r LATERAL VIEW stack(2, a, 'p', `my col`, 'q') s AS y, z
SELECT r.a AS ra, s.* FROM r, LATERAL inline(array(struct(a, b), struct(1 AS a, 'z' AS b))) s
SELECT e, count(*) AS c FROM (SELECT explode(arr) AS e FROM r) GROUP BY e
-- order, limit, values
SELECT a, b FROM r ORDER BY n
SELECT a, b, n FROM r ORDER BY n DESC, b LIMIT 3
SELECT a FROM r ORDER BY n DESC NULLS FIRST, b LIMIT 3
SELECT a, n FROM r ORDER BY n, b NULLS LAST, a LIMIT 2 OFFSET 1
SELECT a, n FROM r ORDER BY n DESC, a DESC OFFSET 4
SELECT * FROM (SELECT a, n FROM r ORDER BY n DESC, a DESC LIMIT 4) WHERE a = 1
SELECT a, count(*) AS c FROM r GROUP BY a ORDER BY sum(n) DESC, a LIMIT 2
SELECT * FROM VALUES (1, 'x', DATE '2020-01-01', 1.5, 2L, 1.5D), (2, NULL, NULL, NULL, NULL, NULL) v(a, b, c, d, e, f)
SELECT * FROM VALUES (array(1, 2), TIMESTAMP '2020-01-01 00:00:00'), (array(), NULL) v(a, b)
SELECT * FROM VALUES (CAST(NULL AS INT)), (NULL) v(a)
SELECT v.k, r.b FROM r JOIN VALUES (1, 'one'), (2, 'two') v(k, w) ON r.a = v.k
SELECT id, id * 2 AS twice FROM range(5)
SELECT sum(id) AS s FROM range(0, 1000, 3)
SELECT id FROM range(5, 5)
SELECT 1 AS a WHERE FALSE
SELECT a FROM r DISTRIBUTE BY a SORT BY b
-- views, WITH, sources
SELECT * FROM sv
SELECT tv.a, sv.n FROM tv JOIN sv ON tv.a = sv.a
WITH q AS (SELECT a, count(*) AS n FROM r GROUP BY a) SELECT p.a, q.n FROM q p JOIN q ON p.n = q.n
WITH q AS (SELECT * FROM r), z AS (SELECT a FROM q WHERE a > 1) SELECT * FROM z UNION ALL SELECT a FROM q
SELECT * FROM pq
SELECT pq.b, s.c FROM pq JOIN s ON pq.a = s.a
FROM r |> WHERE a > 0 |> AGGREGATE count(*) AS n GROUP BY a |> WHERE n > 1
-- subqueries
SELECT a, b FROM r WHERE a IN (SELECT a FROM s)
SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM s WHERE a IS NOT NULL)
SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM s)
SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM s WHERE s.e = r.b)
SELECT a, b FROM r WHERE (a, b) IN (SELECT a, e FROM s)
SELECT a, b FROM r WHERE (a, b) NOT IN (SELECT a, e FROM s)
SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a)
SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.c > r.big)
SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.c > 100)
SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a) OR b = 'y'
SELECT a, b FROM r WHERE a IN (SELECT a FROM s) OR b IN (SELECT e FROM s) OR a IS NULL
SELECT a, b FROM r WHERE NOT (a IN (SELECT a FROM s) AND b = 'x')
SELECT a, a IN (SELECT a FROM s) AS p, a NOT IN (SELECT a FROM s) AS q FROM r
SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.c > 100) OR a = 1
SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.c > 100)
SELECT a, sum(n) AS s FROM r GROUP BY a HAVING EXISTS (SELECT 1 FROM s WHERE s.a = r.a)
SELECT count_if(a IN (SELECT a FROM s)) AS c FROM r
SELECT a, EXISTS (SELECT 1 FROM s WHERE s.a = r.a) AS ex FROM r
SELECT a, CASE WHEN a IN (SELECT a FROM s) THEN 'in' ELSE 'out' END AS io FROM r
SELECT a, b FROM r WHERE a IN (SELECT k FROM one WHERE EXISTS (SELECT 1 FROM s WHERE s.a = one.k))
SELECT a, b FROM r WHERE a IN (SELECT k FROM one WHERE v > (SELECT min(c) FROM s WHERE s.a = one.k))
SELECT a, (SELECT max(c) FROM s) AS mx FROM r
SELECT a, n FROM r WHERE n > (SELECT avg(n) FROM r)
SELECT a, (SELECT v FROM one WHERE k = 5) AS v, (SELECT v FROM one WHERE k = 99) AS w FROM r
SELECT a, (SELECT count(*) FROM s WHERE s.a = r.a) AS cnt FROM r
SELECT a, (SELECT max(c) FROM s WHERE s.a = r.a) AS mx FROM r WHERE big > (SELECT min(c) FROM s WHERE s.a = r.a) - 100
SELECT a, (SELECT v FROM one WHERE one.k = r.a) AS v FROM r
SELECT a, (SELECT v + r.a FROM one WHERE one.k = r.a) AS v FROM r
SELECT a, sum(n) AS s FROM r GROUP BY a HAVING sum(n) > (SELECT min(n) FROM r)
SELECT a, sum(n) + (SELECT max(c) FROM s) AS s FROM r GROUP BY a
SELECT sum(big + (SELECT max(c) FROM s)) AS s FROM r
SELECT a, b FROM r WHERE EXISTS (SELECT * FROM (SELECT * FROM s WHERE s.a = r.a) q WHERE q.c > 10)
SELECT r.a, q.mx FROM r, LATERAL (SELECT max(c) AS mx FROM s WHERE s.a = r.a) q
SELECT r.a, q.c FROM r LEFT JOIN LATERAL (SELECT c FROM s WHERE s.a = r.a AND s.c > 10) q
SELECT a FROM r WHERE (SELECT count(*) FROM s) > 3
SELECT a, b FROM r ORDER BY (SELECT max(c) FROM s), n, b LIMIT 3
SELECT a, b FROM r WHERE a = (SELECT k FROM one WHERE v = (SELECT max(v) FROM one))
SELECT a FROM r WHERE b LIKE ALL ('x%', '%y')
SELECT a, b FROM r WHERE b LIKE ANY ('x%', '%\'s', NULL) OR b NOT LIKE ANY ('y', '%x%')
SELECT a, b FROM r WHERE b NOT LIKE ALL ('x', '_y') AND b ILIKE ANY ('X', 'IT%')
SELECT * FROM (SELECT a, b, big FROM r) PIVOT (sum(big) FOR b IN ('x', 'y', NULL))
SELECT * FROM (SELECT a, b, n, x FROM r) PIVOT (sum(n) AS s, max(x) AS m FOR (a, b) IN ((1, 'x') AS p, (2, 'y') AS q))
SELECT * FROM (SELECT a, b, e FROM r JOIN s USING (a)) PIVOT (max(e) FOR a IN (1, 2, 3))
