-- From INSERTED to DELTA, the pairs that are connected only now.

-- VIEW TC_MID: the pairs that are left after the deletions
SELECT t.Start, t.End FROM TC AS t
WHERE NOT EXISTS (SELECT 1 FROM DEAD AS d WHERE d.Start = t.Start AND d.End = t.End);

-- IF NOT EMPTY(INSERTED)

-- STEP ABOVE: pairs that end where an inserted edge starts or ends
SELECT t.Start, t.End FROM TC_MID AS t
JOIN (SELECT i.Start AS Node FROM INSERTED AS i UNION SELECT i.End AS Node FROM INSERTED AS i) AS n
  ON n.Node = t.End;

-- STEP ADDED: the inserted edges whose ends no path connects yet; the others change nothing
SELECT i.Start, i.End FROM INSERTED AS i
WHERE NOT EXISTS (SELECT 1 FROM ABOVE AS u WHERE u.Start = i.Start AND u.End = i.End);

-- IF NOT EMPTY(ADDED)

-- STEP REACHING: paths to the start of an added edge, the empty path included
SELECT u.Start, u.End FROM ABOVE AS u
JOIN (SELECT DISTINCT a.Start FROM ADDED AS a) AS s ON s.Start = u.End
UNION
SELECT a.Start, a.Start AS End FROM ADDED AS a;

-- STEP LEAVING: paths from the end of an added edge
SELECT t.Start, t.End FROM TC_MID AS t
JOIN (SELECT DISTINCT a.End FROM ADDED AS a) AS s ON s.End = t.Start
UNION
SELECT a.End AS Start, a.End FROM ADDED AS a;

-- STEP HOP: paths from the end of an added edge to the start of one
SELECT r.Start, r.End FROM REACHING AS r
JOIN (SELECT DISTINCT a.End FROM ADDED AS a) AS s ON s.End = r.Start;

-- STEP LINK: paths that begin and end with an added edge
SELECT a.Start, a.End FROM ADDED AS a;

-- STEP MORE: those of two added edges
SELECT DISTINCT x.Start, y.End FROM LINK AS x
JOIN HOP AS h ON h.Start = x.End
JOIN LINK AS y ON y.Start = h.End
WHERE NOT EXISTS (SELECT 1 FROM LINK AS k WHERE k.Start = x.Start AND k.End = y.End);

-- REPEAT UNTIL EMPTY(MORE): those of up to 4, 8, … added edges
-- STEP LINK
SELECT l.Start, l.End FROM LINK AS l UNION ALL SELECT m.Start, m.End FROM MORE AS m;
-- STEP MORE
SELECT q.Start, q.End
FROM (
    SELECT x.Start, y.End FROM MORE AS x
    JOIN HOP AS h ON h.Start = x.End JOIN LINK AS y ON y.Start = h.End
    UNION
    SELECT x.Start, y.End FROM LINK AS x
    JOIN HOP AS h ON h.Start = x.End JOIN MORE AS y ON y.Start = h.End
  ) AS q
WHERE NOT EXISTS (SELECT 1 FROM LINK AS k WHERE k.Start = q.Start AND k.End = q.End);
-- END

-- STEP ENTERED: pairs that end with an added edge, if they are new
SELECT DISTINCT r.Start, l.End FROM LINK AS l JOIN REACHING AS r ON r.End = l.Start
WHERE NOT EXISTS (SELECT 1 FROM ABOVE AS u WHERE u.Start = r.Start AND u.End = l.End);

-- STEP TC_NEW: all new pairs, and maybe some old ones
SELECT DISTINCT i.Start, l.End FROM ENTERED AS i JOIN LEAVING AS l ON l.Start = i.End;

-- STEP KNOWN: the old ones
SELECT n.Start, n.End FROM TC_NEW AS n JOIN TC_MID AS t ON t.Start = n.Start AND t.End = n.End;

-- STEP DELTA: the truly new pairs
SELECT n.Start, n.End FROM TC_NEW AS n
WHERE NOT EXISTS (SELECT 1 FROM KNOWN AS k WHERE k.Start = n.Start AND k.End = n.End);

-- END
-- END

-- DELETE FROM TC
SELECT d.Start, d.End FROM DEAD AS d
WHERE NOT EXISTS (SELECT 1 FROM DELTA AS n WHERE n.Start = d.Start AND n.End = d.End);

-- INSERT INTO TC
SELECT n.Start, n.End FROM DELTA AS n
WHERE NOT EXISTS (SELECT 1 FROM DEAD AS d WHERE d.Start = n.Start AND d.End = n.End);
