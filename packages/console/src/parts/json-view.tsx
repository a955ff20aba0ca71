import { Copy } from './copy.tsx';

/** JSON as it is, to be read and copied. */
export function JsonView({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <figure class="json">
      <figcaption>
        {label} <Copy text={text} about={label} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it, too */}
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}
