import { at, isRecord, listAt, put, textAt } from '../../parts/json-paths.ts';
import type { KnownKind } from './catalogue.ts';

type Names = readonly string[];

/** A claim to be described, wherever it comes from. */
export type ClaimMatch = { readonly path: Names; readonly name: string; readonly required: boolean };

export const isMdoc = (draft: unknown) => textAt(draft, 'config', 'format') === 'mso_mdoc';

/** @returns names alone; positions of arrays are left to the JSON. */
export function pathOf(claim: unknown): Names {
  return listAt(claim, 'path').map((part) => (part === null ? '*' : String(part)));
}

export function shownPath(draft: unknown, path: Names): string {
  return (isMdoc(draft) ? path.slice(1) : path).join(' › ');
}

export function isDisclosable(draft: unknown, path: Names): boolean {
  if (isMdoc(draft)) return true;
  const frame = at(draft, 'disclosureFrame');
  return path.some((name, depth) => listAt(at(frame, ...path.slice(0, depth)), '_sd').includes(name));
}

export function setDisclosable(draft: unknown, path: Names, isOn: boolean): unknown {
  const name = path.at(-1);
  if (name === undefined) return draft;
  const place = ['disclosureFrame', ...path.slice(0, -1), '_sd'];
  const others = listAt(draft, ...place).filter((listed) => listed !== name);
  const listed = isOn ? [...others, name] : others;
  return prune(put(draft, place, listed.length > 0 ? listed : undefined), place.slice(0, -1));
}

/** Frames that say nothing any more are taken away, from the inside out. */
function prune(draft: unknown, place: Names): unknown {
  if (place.length === 0) return draft;
  const frame = at(draft, ...place);
  if (!isRecord(frame) || Object.keys(frame).length > 0) return draft;
  return prune(put(draft, place, undefined), place.slice(0, -1));
}

export function withoutClaim(draft: unknown, index: number): unknown {
  const path = pathOf(listAt(draft, 'config', 'claims')[index]);
  return put(setDisclosable(draft, path, false), ['config', 'claims', index], undefined);
}

/** Adds what is not described yet. What can be withheld, can be from the start. */
export function withClaims(draft: unknown, found: readonly ClaimMatch[], locale: string): unknown {
  return found.reduce<unknown>((sofar, { path, name, required }) => {
    const claims = listAt(sofar, 'config', 'claims');
    const isThere = claims.some((claim) => pathOf(claim).join('\n') === path.join('\n'));
    if (isThere || path.length === 0) return sofar;
    const claim = { path, ...(required && { mandatory: true }), display: [{ name, locale }] };
    const added = put(sofar, ['config', 'claims', claims.length], claim);
    return isMdoc(added) || path.includes('*') ? added : setDisclosable(added, path, true);
  }, draft);
}

/** Takes on the kind: format, type and claims. The id and how it looks stay. */
export function withKind(draft: unknown, kind: KnownKind, locale: string): unknown {
  const isMdocKind = kind.format === 'mso_mdoc';
  const parts: readonly (readonly [readonly string[], unknown])[] = [
    [['config', 'format'], kind.format],
    [['config', 'docType'], isMdocKind ? kind.type : undefined],
    [['config', 'namespace'], kind.namespace],
    [['vct'], isMdocKind ? undefined : kind.type],
    [['disclosureFrame'], undefined],
    [['config', 'claims'], undefined],
  ];
  const typed = parts.reduce<unknown>((sofar, [path, value]) => put(sofar, path, value), draft);
  const found = kind.claims.map(({ path, name, required = false }) => ({ path, name, required }));
  return withClaims(typed, found, locale);
}

const MOST = 200;

/** The claims of a sample: each value that is no object. */
export function claimsOfSample(sample: unknown, above: Names = []): readonly ClaimMatch[] {
  if (!isRecord(sample)) throw new Error('A sample is an object of claims, such as {"given_name": "Ada"}.');
  const found = Object.entries(sample).flatMap(([name, value]): readonly ClaimMatch[] =>
    isRecord(value) && above.length < 8
      ? claimsOfSample(value, [...above, name])
      : [{ path: [...above, name], name: titleOf(name), required: false }],
  );
  return found.slice(0, MOST);
}

/** The claims of a JSON Schema: its properties, and what is required of them. */
export function claimsOfSchema(schema: unknown, above: Names = []): readonly ClaimMatch[] {
  const properties = at(schema, 'properties');
  if (!isRecord(properties)) throw new Error('The schema has no properties.');
  const required = listAt(schema, 'required');
  const found = Object.entries(properties).flatMap(([name, inner]): readonly ClaimMatch[] =>
    isRecord(at(inner, 'properties')) && above.length < 8
      ? claimsOfSchema(inner, [...above, name])
      : [
          {
            path: [...above, name],
            name: textAt(inner, 'title') || titleOf(name),
            required: above.length === 0 && required.includes(name),
          },
        ],
  );
  return found.slice(0, MOST);
}

export function titleOf(name: string): string {
  const words = name.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function languagesOf(draft: unknown): readonly string[] {
  const shown = [
    ...listAt(draft, 'config', 'display'),
    ...listAt(draft, 'config', 'claims').flatMap((claim) => listAt(claim, 'display')),
  ].map((display) => textAt(display, 'locale'));
  const named = [...new Set(shown.filter((locale) => locale !== ''))];
  return named.length > 0 ? named : ['en'];
}

export function labelOf(claim: unknown, locale: string): string {
  const found = listAt(claim, 'display').find((display) => textAt(display, 'locale') === locale);
  return textAt(found, 'name');
}

/** @param name empty takes the label away. */
export function withLabel(claim: unknown, locale: string, name: string): unknown {
  const labels = listAt(claim, 'display');
  const index = labels.findIndex((display) => textAt(display, 'locale') === locale);
  const next =
    index < 0 ? [...labels, { name, locale }] : labels.map((display, place) => (place === index ? put(display, ['name'], name) : display));
  const kept = next.filter((display) => textAt(display, 'name') !== '');
  return put(claim, ['display'], kept.length > 0 ? kept : undefined);
}
