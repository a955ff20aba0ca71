import { asCurl, asTypeScript, made } from '../api/made.ts';
import { Copy } from './copy.tsx';

export function Calls({ close }: { readonly close: () => void }) {
  return (
    <aside class="calls" aria-label="Calls of this page">
      <header>
        <h2>Calls</h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </header>
      <p class="fine">
        The console uses the public interface and nothing else. The newest is at the top; secrets are left out.{' '}
        <a href="docs" target="_blank" rel="noreferrer">
          Reference
        </a>
      </p>
      <ol>
        {made.value.map((call, index) => (
          <li key={made.value.length - index}>
            <code>
              {call.method} {call.address}
            </code>
            <span class="fine">
              {call.status} · {Math.round(call.ms)} ms
            </span>
            <Copy text={asCurl(call, location.origin)} label="Copy as curl" about={`${call.method} ${call.address}`} />
            <Copy text={asTypeScript(call, location.origin)} label="Copy as TypeScript" about={`${call.method} ${call.address}`} />
          </li>
        ))}
      </ol>
    </aside>
  );
}
