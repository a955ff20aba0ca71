type Props = { readonly value: unknown; readonly depth?: number };

/** Deeper than this it is written as JSON. */
const DEEPEST = 12;
const OPEN = 5;

/** Claims as a tree: what has members unfolds. */
export function ValueTree({ value, depth = 0 }: Props) {
  if (typeof value !== 'object' || value === null || depth >= DEEPEST) return <span>{asText(value)}</span>;
  const members = Object.entries(value).filter(([, inner]) => inner !== undefined);
  if (members.length === 0) return <span class="fine">empty</span>;
  return (
    <ul class="tree">
      {members.map(([name, inner]) => (
        <li key={name} class="branch">
          {typeof inner === 'object' && inner !== null ? (
            <details open={depth < OPEN}>
              <summary>{Array.isArray(value) ? Number(name) + 1 : name}</summary>
              <ValueTree value={inner} depth={depth + 1} />
            </details>
          ) : (
            <>
              <strong>{Array.isArray(value) ? Number(name) + 1 : name}</strong> {asText(inner)}
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
