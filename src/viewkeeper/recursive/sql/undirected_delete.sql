-- From DELETED to REACHED, nodes with the part of their component that they are in now; LINKS between
-- parts that are one; VANISHED, nodes without edges.

-- IF NOT EMPTY(DELETED)

-- STEP LOOSE: the ends of deleted edges
SELECT d.Start AS Node FROM DELETED AS d UNION SELECT d.End AS Node FROM DELETED AS d;

-- VIEW KEPT: the edges that were there and still are, maybe in copies
SELECT e.Start, e.End FROM EDGES AS e
WHERE e.Start IS NOT NULL AND e.End IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM INSERTED AS i WHERE i.Start = e.Start AND i.End = e.End)
  AND NOT EXISTS (SELECT 1 FROM INSERTED AS i WHERE i.Start = e.End AND i.End = e.Start);

-- VIEW ALONG: in both directions
SELECT k.Start, k.End FROM KEPT AS k UNION ALL SELECT k.End AS Start, k.Start AS End FROM KEPT AS k;

-- STEP VANISHED: those that no edge has any more
SELECT l.Node FROM LOOSE AS l
WHERE NOT EXISTS (
    SELECT 1
    FROM (
        SELECT e.Start AS Node FROM EDGES AS e JOIN LOOSE AS a ON a.Node = e.Start WHERE e.End IS NOT NULL
        UNION
        SELECT e.End AS Node FROM EDGES AS e JOIN LOOSE AS a ON a.Node = e.End WHERE e.Start IS NOT NULL
      ) AS h
    WHERE h.Node = l.Node
  );

-- STEP PART: each end begins a part, with a number of its own
SELECT c.Node, c.Comp, t.Top + ROW_NUMBER() OVER (ORDER BY c.Node) AS Part
FROM COMPONENT AS c JOIN LOOSE AS l ON l.Node = c.Node CROSS JOIN TOP AS t;

-- STEP GROUPS: parts that met belong to one group, named by one of them; known in time, not at once
SELECT p.Part, p.Comp, p.Part AS Grp FROM PART AS p;

-- STEP REACHED: the nodes of each part
SELECT p.Node, p.Part FROM PART AS p;

-- STEP FRONTIER: those that came last, while a component may still fall apart
SELECT p.Node, p.Part FROM PART AS p
JOIN (SELECT q.Comp FROM PART AS q GROUP BY q.Comp HAVING COUNT(*) > 1) AS o ON o.Comp = p.Comp;

-- STEP MEET: parts that an edge connects
SELECT p.Part AS A, p.Part AS B FROM PART AS p WHERE 1 = 0;

-- STEP OPEN_PART: the part that goes on when its component is settled, so it has all nodes not reached
SELECT p.Comp, p.Part FROM PART AS p WHERE 1 = 0;

-- REPEAT UNTIL EMPTY(FRONTIER) AT MOST 60: parts of a component are far from each other

-- STEP TOUCH: the neighbours
SELECT DISTINCT a.End AS Node, f.Part FROM FRONTIER AS f JOIN ALONG AS a ON a.Start = f.Node;

-- STEP MET: neighbours of two parts, and nodes of one that are neighbours of another
SELECT t.Part AS A, r.Part AS B FROM TOUCH AS t JOIN REACHED AS r ON r.Node = t.Node AND r.Part <> t.Part
UNION
SELECT t.Part AS A, u.Part AS B FROM TOUCH AS t JOIN TOUCH AS u ON u.Node = t.Node AND u.Part <> t.Part;

-- STEP MEET
SELECT m.A, m.B FROM MEET AS m UNION SELECT m.A, m.B FROM MET AS m UNION SELECT m.B AS A, m.A AS B FROM MET AS m;

-- STEP NEARER: the smallest group that a part met
SELECT g.Part, g.Comp, LEAST(g.Grp, COALESCE(MIN(o.Grp), g.Grp)) AS Grp
FROM GROUPS AS g
LEFT JOIN MEET AS m ON m.A = g.Part
LEFT JOIN GROUPS AS o ON o.Part = m.B
GROUP BY g.Part, g.Comp, g.Grp;

-- STEP GROUPS: and the group of that
SELECT n.Part, n.Comp, m.Grp FROM NEARER AS n JOIN NEARER AS m ON m.Part = n.Grp;

-- STEP NEWLY: neighbours that no part had
SELECT t.Node, MIN(t.Part) AS Part FROM TOUCH AS t
WHERE NOT EXISTS (SELECT 1 FROM REACHED AS r WHERE r.Node = t.Node)
GROUP BY t.Node;

-- STEP REACHED
SELECT r.Node, r.Part FROM REACHED AS r UNION ALL SELECT n.Node, n.Part FROM NEWLY AS n;

-- STEP GROWING: groups that have not come to their end
SELECT DISTINCT g.Comp, g.Grp FROM NEWLY AS n JOIN GROUPS AS g ON g.Part = n.Part;

-- STEP OPEN_PART
SELECT o.Comp, o.Part FROM OPEN_PART AS o
UNION
SELECT g.Comp, MIN(g.Grp) AS Part FROM GROWING AS g GROUP BY g.Comp HAVING COUNT(*) = 1;

-- STEP FRONTIER: go on in components with two such groups or more
SELECT n.Node, n.Part FROM NEWLY AS n
JOIN GROUPS AS g ON g.Part = n.Part
JOIN (SELECT w.Comp FROM GROWING AS w GROUP BY w.Comp HAVING COUNT(*) > 1) AS o ON o.Comp = g.Comp;

-- END

-- STEP OWNER: the part that keeps the component's number: the open one, else the largest
SELECT q.Comp, q.Part
FROM (
    SELECT g.Comp, g.Part,
        ROW_NUMBER() OVER (
            PARTITION BY g.Comp ORDER BY CASE WHEN o.Part IS NULL THEN 1 ELSE 0 END, s.N DESC, g.Part
        ) AS Place
    FROM GROUPS AS g
    JOIN (SELECT r.Part, COUNT(*) AS N FROM REACHED AS r GROUP BY r.Part) AS s ON s.Part = g.Part
    LEFT JOIN OPEN_PART AS o ON o.Part = g.Part
  ) AS q
WHERE q.Place = 1;

-- END
