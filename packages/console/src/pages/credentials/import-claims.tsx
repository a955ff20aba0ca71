import { Confirm } from '../../parts/confirm.tsx';
import { read } from '../../parts/json-editor.tsx';
import { put } from '../../parts/json-paths.ts';
import type { Draft } from '../../parts/use-draft.ts';
import { CATALOGUE } from './catalogue.ts';
import { claimsOfSample, claimsOfSchema, isMdoc, languagesOf, withClaims, withKind } from './claims.ts';

/** Claims from what is there: a known kind, values of a person, or a schema. */
export function ImportClaims({ draft }: { readonly draft: Draft }) {
  const act = async (form: FormData) => {
    const from = String(form.get('from'));
    const [locale = 'en'] = languagesOf(draft.value);
    const kind = CATALOGUE.find(({ id }) => id === from);
    if (kind !== undefined) {
      draft.replace(withKind(draft.value, kind, locale));
      return `${kind.claims.length} claims of ${kind.title}.`;
    }
    const parsed = read(String(form.get('json')));
    if ('fault' in parsed) throw new Error(`The text is no JSON: ${parsed.fault}`);
    const isSchema = from === 'schema';
    const found = isSchema ? claimsOfSchema(parsed.value) : claimsOfSample(parsed.value);
    const namespace = String((draft.value as { config?: { namespace?: unknown } }).config?.namespace ?? '');
    const placed = isMdoc(draft.value)
      ? found.filter(({ path }) => path.length === 1).map((claim) => ({ ...claim, path: [namespace, ...claim.path] }))
      : found;
    const described = withClaims(draft.value, placed, locale);
    draft.replace(isSchema && form.has('hold') ? put(described, ['schema'], parsed.value) : described);
    return `${placed.length} claims were found.`;
  };
  return (
    <Confirm label="Import claims" title="Import claims" act={act}>
      <label>
        From
        <select name="from">
          <optgroup label="A known kind: sets format, type and claims">
            {CATALOGUE.map(({ id, title, source }) => (
              <option key={id} value={id}>
                {title} · {source}
              </option>
            ))}
          </optgroup>
          <optgroup label="The text below: adds claims">
            <option value="sample">A sample, JSON with the claims of somebody</option>
            <option value="schema">A JSON Schema</option>
          </optgroup>
        </select>
      </label>
      <label>
        Sample or schema
        <textarea name="json" rows={8} spellcheck={false} placeholder='{"given_name": "Ada"}' />
      </label>
      <label>
        <input type="checkbox" name="hold" />
        Hold the claims of every credential to this schema
      </label>
      <p class="fine">Values of a sample are not kept: only the names of its claims are.</p>
    </Confirm>
  );
}
