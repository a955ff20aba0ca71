import { useId } from 'preact/hooks';
import { About } from './about.tsx';
import { Remarks, toldOf } from './field.tsx';
import { at, type Path, textAt } from './json-paths.ts';
import type { Draft } from './use-draft.ts';

type Props = {
  readonly draft: Draft;
  readonly path: Path;
  readonly label: string;
  readonly hint: string;
  /** Which call it is about, where a page has several. */
  readonly about?: string;
};

export function WebhookFields({ draft, path, label, hint, about }: Props) {
  const id = useId();
  const auth = [...path, 'auth'];
  const config = [...auth, 'config'];
  const name = textAt(draft.value, ...config, 'headerName');
  const value = textAt(draft.value, ...config, 'value');
  const hasUrl = at(draft.value, ...path) !== undefined;
  const call = (url: string) => draft.change(url === '' ? path : [...path, 'url'], url === '' ? undefined : url);
  // A header is whole or not there: what is half of one would be refused without need.
  const bear = (headerName: string, key: string) =>
    draft.change(auth, headerName + key === '' ? undefined : { type: 'apiKey', config: { headerName, value: key } });
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="url"
        spellcheck={false}
        value={textAt(draft.value, ...path, 'url')}
        aria-describedby={`${id}-hint`}
        onInput={(event) => call(event.currentTarget.value.trim())}
      />
      <p class="fine" id={`${id}-hint`}>
        {hint}
      </p>
      {hasUrl && (
        <div class="pair">
          <label>
            Header that it bears
            <About about={about} />
            <input
              value={name}
              spellcheck={false}
              placeholder="Authorization"
              onInput={(event) => bear(event.currentTarget.value.trim(), value)}
            />
          </label>
          <label>
            Its value, which is a secret
            <About about={about} />
            <input type="password" autocomplete="off" value={value} onInput={(event) => bear(name, event.currentTarget.value)} />
          </label>
        </div>
      )}
      <Remarks told={toldOf(draft.told, path)} />
    </div>
  );
}
