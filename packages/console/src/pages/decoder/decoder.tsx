import { JsonView } from '../../parts/json-view.tsx';
import { pasted } from './pasted.ts';
import { recognise } from './recognise.ts';
import { Tree } from './tree.tsx';

export default function Decoder() {
  const text = pasted.value;
  const found = recognise(text);
  return (
    <>
      <h1>Decoder</h1>
      <p>Tokens, credentials, certificates, links, keys. Nothing leaves this window, nothing is kept, and nothing is verified.</p>
      <label>
        Paste anything
        <textarea
          rows={6}
          value={text}
          spellcheck={false}
          autocapitalize="none"
          onInput={(event) => {
            pasted.value = event.currentTarget.value;
          }}
        />
      </label>
      {text !== '' && (
        <p>
          <button
            type="button"
            class="quiet"
            onClick={() => {
              pasted.value = '';
            }}
          >
            Clear
          </button>
        </p>
      )}
      {found?.isPrivate && (
        <div role="alert" class="problem">
          <p>
            <strong>Stop: that is a private key.</strong> {found.sentence}
          </p>
        </div>
      )}
      <div role="status">
        <p>
          <strong>{found?.isPrivate ? '' : (found?.sentence ?? (text.trim() === '' ? '' : UNKNOWN))}</strong>
        </p>
      </div>
      {found?.parts.map(({ title, value }) => (
        <section key={title} class="card">
          {typeof value === 'string' && value.includes('\n') ? (
            <JsonView value={value} label={title} />
          ) : (
            <>
              <h2>{title}</h2>
              <Tree value={value} />
            </>
          )}
        </section>
      ))}
    </>
  );
}

const UNKNOWN =
  'This is nothing that can be taken apart here. A request id of an error stands in the log of the service, beside what went wrong.';
