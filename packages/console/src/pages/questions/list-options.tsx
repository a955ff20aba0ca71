import { useId } from 'preact/hooks';
import { Field } from '../../parts/field.tsx';
import { at, listAt, type Path } from '../../parts/json-paths.ts';
import type { Draft } from '../../parts/use-draft.ts';
import { certificateName } from '../trust/anchors.ts';
import { CertificateForm } from '../trust/certificate-form.tsx';

type Props = { readonly draft: Draft; readonly path: Path };

const TIMES = { '': 'now', issuance: 'when the credential was issued' };

export function ListOptions({ draft, path }: Props) {
  const bare = { ...draft, told: [] };
  const signers = listAt(draft.value, ...path, 'signedBy').map(String);
  const isFollowed = at(draft.value, ...path, 'follow') !== undefined;
  const sign = (next: readonly string[]) => draft.change([...path, 'signedBy'], next.length > 0 ? next : undefined);
  return (
    <details>
      <summary>How far it is trusted</summary>
      <Field draft={bare} path={[...path, 'trustList']} label="Address" />
      <p>Signed by</p>
      <ul class="plain-list">
        {signers.map((pem, place) => (
          <li key={pem}>
            {certificateName(pem)}{' '}
            <button
              type="button"
              class="quiet small"
              aria-label={`Remove the signer ${certificateName(pem)}`}
              onClick={() => sign(signers.filter((_, other) => other !== place))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <CertificateForm
        label="Another signer"
        button="Add the signer"
        wanted={() => 'signer'}
        take={(found) => {
          sign([...new Set([...signers, ...found.map(({ pem }) => pem)])]);
          return undefined;
        }}
      />
      <Field
        draft={bare}
        path={[...path, 'serviceStatusAt']}
        label="The status of a service counts as it is"
        choices={TIMES}
        hint="An issuer that lost its key, or its standing, can say any time."
      />
      <Words
        draft={draft}
        path={[...path, 'serviceTypes']}
        label="Types of services, one a line"
        hint="Those that issue credentials unless stated."
        isLong
      />
      <label>
        <input
          type="checkbox"
          checked={isFollowed}
          onChange={(event) => draft.change([...path, 'follow'], event.currentTarget.checked ? {} : undefined)}
        />
        A list of lists: those that it points to count
      </label>
      {isFollowed && (
        <Words
          draft={draft}
          path={[...path, 'follow', 'territories']}
          label="Of these territories only"
          hint="Such as DE FR; all unless stated."
        />
      )}
    </details>
  );
}

type WordsProps = Props & { readonly label: string; readonly hint: string; readonly isLong?: boolean };

/** Texts without spaces, taken when the field is left, so that a space can be typed. */
function Words({ draft, path, label, hint, isLong = false }: WordsProps) {
  const id = useId();
  const written = listAt(draft.value, ...path).map(String);
  const common = {
    id,
    spellcheck: false,
    'aria-describedby': `${id}-hint`,
    value: written.join(isLong ? '\n' : ' '),
    onChange: (event: Event) => {
      const words = (event.currentTarget as HTMLInputElement).value.split(/\s+/).filter((word) => word !== '');
      draft.change(path, words.length > 0 ? words : undefined);
    },
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {isLong ? <textarea {...common} rows={2} /> : <input {...common} />}
      <p class="fine" id={`${id}-hint`}>
        {hint}
      </p>
    </div>
  );
}
