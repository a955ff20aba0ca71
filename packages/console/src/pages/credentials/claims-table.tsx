import { useState } from 'preact/hooks';
import { Remarks, toldOf } from '../../parts/field.tsx';
import { at, listAt, put, textAt } from '../../parts/json-paths.ts';
import type { Draft } from '../../parts/use-draft.ts';
import {
  isDisclosable,
  isMdoc,
  labelOf,
  languagesOf,
  pathOf,
  setDisclosable,
  shownPath,
  titleOf,
  withClaims,
  withLabel,
  withoutClaim,
} from './claims.ts';

export function ClaimsTable({ draft }: { readonly draft: Draft }) {
  const { value } = draft;
  const [added, setAdded] = useState<readonly string[]>([]);
  const languages = [...new Set([...languagesOf(value), ...added])];
  const claims = listAt(value, 'config', 'claims');
  return (
    <>
      {claims.length === 0 ? (
        <p class="empty">No claim is described yet. Import some, or add one.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it, too
        <section class="scroll claims" aria-label="Table of the claims" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Claim</th>
                {languages.map((locale) => (
                  <th key={locale} scope="col">
                    Label ({locale})
                  </th>
                ))}
                <th scope="col">Can be withheld</th>
                <th scope="col">Required</th>
                <th scope="col">
                  <span class="hidden">Remove</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {claims.map((claim, index) => (
                <ClaimRow key={index} draft={draft} claim={claim} index={index} languages={languages} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      <Remarks told={toldOf(draft.told, ['disclosureFrame'])} />
      <Adders draft={draft} addLanguage={(locale) => setAdded([...added, locale])} />
    </>
  );
}

type RowProps = { readonly draft: Draft; readonly claim: unknown; readonly index: number; readonly languages: readonly string[] };

function ClaimRow({ draft, claim, index, languages }: RowProps) {
  const path = pathOf(claim);
  const name = shownPath(draft.value, path);
  const place = ['config', 'claims', index];
  return (
    <tr>
      <td data-title="Claim">
        <code>{name}</code>
        <Remarks told={toldOf(draft.told, place)} />
      </td>
      {languages.map((locale) => (
        <td key={locale} data-title={`Label (${locale})`}>
          <input
            aria-label={`Label of ${name} in ${locale}`}
            value={labelOf(claim, locale)}
            lang={locale}
            onInput={(event) => draft.change(place, withLabel(claim, locale, event.currentTarget.value))}
          />
        </td>
      ))}
      <td data-title="Can be withheld">
        <input
          type="checkbox"
          aria-label={`${name} can be withheld`}
          checked={isDisclosable(draft.value, path)}
          disabled={isMdoc(draft.value) || path.includes('*')}
          onChange={(event) => draft.replace(setDisclosable(draft.value, path, event.currentTarget.checked))}
        />
      </td>
      <td data-title="Required">
        <input
          type="checkbox"
          aria-label={`${name} is required`}
          checked={at(claim, 'mandatory') === true}
          onChange={(event) => draft.change([...place, 'mandatory'], event.currentTarget.checked ? true : undefined)}
        />
      </td>
      <td data-title="">
        <button
          type="button"
          class="quiet small"
          title="Remove"
          aria-label={`Remove ${name}`}
          onClick={() => draft.replace(withoutClaim(draft.value, index))}
        >
          ✕
        </button>
      </td>
    </tr>
  );
}

function Adders({ draft, addLanguage }: { readonly draft: Draft; readonly addLanguage: (locale: string) => void }) {
  const { value } = draft;
  const [locale = 'en'] = languagesOf(value);
  const add = (event: SubmitEvent, name: string, use: (text: string) => void) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const text = String(new FormData(form).get(name)).trim();
    if (text !== '') use(text);
    form.reset();
  };
  const addClaim = (text: string) => {
    const names = text.split('/').filter((part) => part !== '');
    const path = isMdoc(value) ? [textAt(value, 'config', 'namespace'), ...names] : names;
    const found = { path, name: titleOf(names.at(-1) ?? text), required: false };
    draft.replace(withClaims(value, [found], locale));
  };
  const language = (code: string) => {
    addLanguage(code);
    const display = listAt(value, 'config', 'display');
    const has = display.some((shown) => textAt(shown, 'locale') === code);
    const name = textAt(display[0], 'name');
    if (!has && name !== '') {
      draft.replace(put(value, ['config', 'display', display.length], { ...(display[0] as object), locale: code }));
    }
  };
  return (
    <div class="adders">
      <form onSubmit={(event) => add(event, 'claim', addClaim)}>
        <label>
          {isMdoc(value) ? 'Element' : 'Claim, such as address/street'}
          <input name="claim" spellcheck={false} autocapitalize="none" />
        </label>
        <button type="submit">Add claim</button>
      </form>
      <form onSubmit={(event) => add(event, 'locale', language)}>
        <label>
          Language, such as de
          <input name="locale" pattern="[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*" spellcheck={false} autocapitalize="none" />
        </label>
        <button type="submit">Add language</button>
      </form>
    </div>
  );
}
