-- SYSTEM undirected: the components of an undirected graph, and by them its closure
-- NODES Least, LeastS, LeastE
-- Pairs are not stored: a component of n nodes has n² of them.
-- INPUT EDGES (Start NODE, End NODE): the rows that there are now, in either direction, with copies
-- INPUT CHANGES (Start NODE, End NODE, Weight BIGINT): the rows that came (+1) and went (-1)
-- TABLE COMPONENT (Node NODE, Comp BIGINT): each node's component, by a number of ours
-- TABLE COMPONENTS (Comp BIGINT, Smallest NODE, Nodes BIGINT): its name for readers, and its size
-- SETTING few = 1000: as many neighbours both sides of a search look at in a round

-- OUTPUT pairs: two nodes that are connected, in both directions
SELECT x.Node AS Start, y.Node AS End
FROM COMPONENT AS x JOIN COMPONENT AS y ON y.Comp = x.Comp AND y.Node <> x.Node;

-- OUTPUT components: the component of each node, named by its smallest node
SELECT n.Node, c.Smallest FROM COMPONENT AS n JOIN COMPONENTS AS c ON c.Comp = n.Comp;

-- ON BATCH: the deletions first

-- STEP NET: the edges whose number of copies changed, smaller end first
SELECT c.Start, c.End, SUM(c.Weight) AS Weight
FROM (
    SELECT CASE WHEN r.Start <= r.End THEN r.Start ELSE r.End END AS Start,
        CASE WHEN r.Start <= r.End THEN r.End ELSE r.Start END AS End,
        r.Weight
    FROM CHANGES AS r WHERE r.Start IS NOT NULL AND r.End IS NOT NULL
  ) AS c
GROUP BY c.Start, c.End
HAVING SUM(c.Weight) <> 0;

-- STEP COPIES: how many copies of them there are now
SELECT e.Start, e.End, COUNT(*) AS Copies
FROM (
    SELECT CASE WHEN r.Start <= r.End THEN r.Start ELSE r.End END AS Start,
        CASE WHEN r.Start <= r.End THEN r.End ELSE r.Start END AS End
    FROM EDGES AS r WHERE r.Start IS NOT NULL AND r.End IS NOT NULL
  ) AS e
JOIN NET AS n ON n.Start = e.Start AND n.End = e.End
GROUP BY e.Start, e.End;

-- STEP INSERTED: edges of which there were no copies
SELECT n.Start, n.End FROM NET AS n JOIN COPIES AS c ON c.Start = n.Start AND c.End = n.End
WHERE c.Copies <= n.Weight;

-- STEP DELETED: edges of which there are none left
SELECT n.Start, n.End FROM NET AS n
WHERE n.Weight < 0
  AND NOT EXISTS (SELECT 1 FROM COPIES AS c WHERE c.Start = n.Start AND c.End = n.End);

-- STEP TOP: the largest number in use
SELECT COALESCE(MAX(c.Comp), 0) AS Top FROM COMPONENTS AS c;

-- INCLUDE undirected_delete.sql
-- INCLUDE undirected_insert.sql

-- ON BUILD: contract all edges

-- VIEW G
SELECT e.Start, e.End FROM EDGES AS e WHERE e.Start IS NOT NULL AND e.End IS NOT NULL;

-- STEP PLACE: each node with a number of its own
SELECT n.Node, CAST(ROW_NUMBER() OVER (ORDER BY n.Node) AS BIGINT) AS Label
FROM (SELECT g.Start AS Node FROM G AS g UNION SELECT g.End AS Node FROM G AS g) AS n;

-- STEP LINKED: the edges by numbers
SELECT DISTINCT x.Label AS A, y.Label AS B FROM G AS g
JOIN PLACE AS x ON x.Node = g.Start
JOIN PLACE AS y ON y.Node = g.End
WHERE x.Label <> y.Label;

-- STEP EDGE: in both directions
SELECT l.A, l.B FROM LINKED AS l UNION SELECT l.B AS A, l.A AS B FROM LINKED AS l;

-- STEP ROOT: each node by itself
SELECT p.Label, p.Label AS Root FROM PLACE AS p;

-- INCLUDE contract.sql

-- INSERT INTO COMPONENT
SELECT p.Node, r.Root AS Comp FROM PLACE AS p JOIN ROOT AS r ON r.Label = p.Label;

-- INSERT INTO COMPONENTS
SELECT c.Comp, MIN(c.Node) AS Smallest, COUNT(*) AS Nodes FROM COMPONENT_COME AS c GROUP BY c.Comp;
