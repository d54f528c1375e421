-- From CUT, the deleted edges that matter, to DEAD, the pairs that no path connects any more.
-- UPWARD holds the pairs of TC that end where a deleted edge starts or ends.

-- STEP BEFORE: paths to the start of a cut edge, the empty path included
SELECT u.Start, u.End FROM UPWARD AS u
JOIN (SELECT DISTINCT c.Start FROM CUT AS c) AS s ON s.Start = u.End
UNION
SELECT c.Start, c.Start AS End FROM CUT AS c;

-- STEP AFTER: paths from the end of a cut edge
SELECT t.Start, t.End FROM TC AS t
JOIN (SELECT DISTINCT c.End FROM CUT AS c) AS s ON s.End = t.Start
UNION
SELECT c.End AS Start, c.End FROM CUT AS c;

-- STEP TOO_MANY: how many ways over cut edges there are, with their weights, if too many
SELECT w.Ways
FROM (
    SELECT SUM(x.N * y.N * c.Weight) AS Ways FROM CUT AS c
    JOIN (SELECT b.End, COUNT(*) AS N FROM BEFORE AS b GROUP BY b.End) AS x ON x.End = c.Start
    JOIN (SELECT f.Start, COUNT(*) AS N FROM AFTER AS f GROUP BY f.Start) AS y ON y.Start = c.End
  ) AS w
CROSS JOIN (SELECT COUNT(*) AS N FROM TC) AS a
WHERE w.Ways > a.N * :share;

-- RECOMPUTE UNLESS EMPTY(TOO_MANY): the deleted edges are on too many of the paths

-- STEP SUSPECT: pairs with a path over a cut edge
SELECT DISTINCT x.Start, y.End FROM CUT AS c
JOIN BEFORE AS x ON x.End = c.Start
JOIN AFTER AS y ON y.Start = c.End;

-- All other pairs of TC are trusty: none of their paths is lost.

-- STEP WITHIN: the starts of suspect pairs, and the nodes that they reached
SELECT t.End AS Node FROM TC AS t JOIN (SELECT DISTINCT s.Start FROM SUSPECT AS s) AS x ON x.Start = t.Start
UNION
SELECT s.Start AS Node FROM SUSPECT AS s;

-- STEP ARRIVING: kept edges from there into the end of a suspect pair
SELECT DISTINCT k.Start AS Via, k.End FROM KEPT AS k
JOIN (SELECT DISTINCT s.End FROM SUSPECT AS s) AS e ON e.End = k.End
JOIN WITHIN AS w ON w.Node = k.Start;

-- STEP CANDIDATE: a suspect pair, and a kept edge that might be the last one of a path
SELECT s.Start, a.Via, s.End FROM SUSPECT AS s JOIN ARRIVING AS a ON a.End = s.End
WHERE a.Via = s.Start
   OR NOT EXISTS (SELECT 1 FROM SUSPECT AS u WHERE u.Start = s.Start AND u.End = a.Via);

-- STEP ENTRY: suspect pairs that a trusty path, or an empty one, and a kept edge connect
SELECT c.Start, c.End FROM CANDIDATE AS c WHERE c.Via = c.Start
UNION
SELECT c.Start, c.End FROM CANDIDATE AS c JOIN TC AS t ON t.Start = c.Start AND t.End = c.Via;

-- STEP ONWARD: trusty paths from there
SELECT t.Start, t.End FROM TC AS t
JOIN (SELECT DISTINCT e.End FROM ENTRY AS e) AS e ON e.End = t.Start
WHERE NOT EXISTS (SELECT 1 FROM SUSPECT AS s WHERE s.Start = t.Start AND s.End = t.End);

-- STEP ALIVE: suspect pairs that an entry connects, or an entry and a trusty path
SELECT e.Start, e.End FROM ENTRY AS e
UNION
SELECT s.Start, s.End FROM ENTRY AS e
JOIN ONWARD AS o ON o.Start = e.End
JOIN SUSPECT AS s ON s.Start = e.Start AND s.End = o.End;

-- STEP REVIVED: an entry, and a pair just found alive
SELECT DISTINCT s.Start, s.End FROM ENTRY AS e
JOIN ALIVE AS a ON a.Start = e.End
JOIN SUSPECT AS s ON s.Start = e.Start AND s.End = a.End
WHERE NOT EXISTS (SELECT 1 FROM ALIVE AS k WHERE k.Start = s.Start AND k.End = s.End);

-- REPEAT UNTIL EMPTY(REVIVED)
-- STEP ALIVE
SELECT a.Start, a.End FROM ALIVE AS a UNION ALL SELECT r.Start, r.End FROM REVIVED AS r;
-- STEP REVIVED
SELECT DISTINCT s.Start, s.End FROM ENTRY AS e
JOIN REVIVED AS a ON a.Start = e.End
JOIN SUSPECT AS s ON s.Start = e.Start AND s.End = a.End
WHERE NOT EXISTS (SELECT 1 FROM ALIVE AS k WHERE k.Start = s.Start AND k.End = s.End);
-- END

-- STEP DEAD: the bad guys
SELECT s.Start, s.End FROM SUSPECT AS s
WHERE NOT EXISTS (SELECT 1 FROM ALIVE AS a WHERE a.Start = s.Start AND a.End = s.End);
