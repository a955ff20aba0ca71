import { hash } from 'node:crypto';

/** What can end. */
export const FORECAST_KINDS = [
  'key-chain',
  'authority',
  'anchor',
  'list-signer',
  'followed-list',
  'published-list',
  'registration-certificate',
] as const;
export type ForecastKind = (typeof FORECAST_KINDS)[number];

/** Which configurations fail when something ends. Ids. */
export type Affected = { readonly issuance: readonly string[]; readonly presentation: readonly string[] };

/** Whose business it is; both for what both sides need. */
export type Side = keyof Affected;

export type Ending = {
  readonly kind: ForecastKind;
  /** Of the thing; of a certificate its fingerprint. */
  readonly id: string;
  /** What people call it. */
  readonly name: string;
  readonly endsAt: Date;
  /** The service sees to it by itself, as long as nothing is in the way. */
  readonly renews: boolean;
  readonly affects: Affected;
  readonly advice: string;
};

/** An ending with its place among the others. */
export type ForecastItem = Ending & { readonly key: string };

export type ForecastQuery = {
  readonly sides: ReadonlySet<Side>;
  readonly until: Date | undefined;
  readonly kind: ForecastKind | undefined;
  /** In its id or name, or the id of what rests on it, in capitals or not. */
  readonly words: string | undefined;
  readonly limit: number;
  readonly after: string | undefined;
  readonly sort: 'asc' | 'desc';
};

export type ForecastPage = {
  readonly items: readonly ForecastItem[];
  /** Of all pages. */
  readonly count: number;
  readonly next: string | undefined;
};

/** Configurations that one item names; the first by their ids. */
const MAX_AFFECTED = 100;

/**
 * A page of what ends, the soonest first. What fails only configurations of a side that somebody has no say in is left out, and
 * so are these.
 */
export function forecastPage(endings: readonly Ending[], { sides, until, kind, words, limit, after, sort }: ForecastQuery): ForecastPage {
  const direction = sort === 'asc' ? 1 : -1;
  const items = gathered(endings.flatMap((ending) => seenBy(ending, sides)))
    .filter((ending) => isWanted(ending, { until, kind, words: words?.toLowerCase() }))
    .map((ending): ForecastItem => ({ ...ending, key: keyOf(ending) }))
    .sort((one, other) => (one.key < other.key ? -direction : direction));
  const left = items.filter(({ key }) => after === undefined || (sort === 'asc' ? key > after : key < after));
  const page = left.slice(0, limit);
  const next = left.length > limit ? page.at(-1)?.key : undefined;
  return { items: page, count: items.length, next };
}

function isWanted(
  { endsAt, kind: own, id, name, affects }: Ending,
  { until, kind, words }: Pick<ForecastQuery, 'until' | 'kind' | 'words'>,
): boolean {
  if (until !== undefined && endsAt > until) return false;
  if (kind !== undefined && own !== kind) return false;
  const named = [id, name, ...affects.issuance, ...affects.presentation];
  return words === undefined || named.some((text) => text.toLowerCase().includes(words));
}

/** Of one thing that several configurations name there is one item, with what to do for each of them. */
function gathered(endings: readonly Ending[]): readonly Ending[] {
  const groups = Map.groupBy(endings, ({ kind, id }) => `${kind} ${id}`);
  return [...groups.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const all = (side: Side) => [...new Set(same.flatMap(({ affects }) => affects[side]))].sort().slice(0, MAX_AFFECTED);
    const renews = same.every((one) => one.renews);
    const advice = [...new Set(same.map((one) => one.advice))].join('; ');
    return [{ ...first, renews, advice, affects: { issuance: all('issuance'), presentation: all('presentation') } }];
  });
}

/** What nothing rests on is nobody's business in particular. */
function seenBy(ending: Ending, sides: ReadonlySet<Side>): readonly Ending[] {
  const { affects } = ending;
  const seen = (side: Side) => (sides.has(side) ? affects[side] : []);
  const own = { issuance: seen('issuance'), presentation: seen('presentation') };
  const isIdle = affects.issuance.length + affects.presentation.length === 0;
  const isOwn = own.issuance.length + own.presentation.length > 0;
  return isIdle || isOwn ? [{ ...ending, affects: own }] : [];
}

function keyOf({ endsAt, kind, id }: Ending): string {
  const time = String(Math.max(0, endsAt.getTime())).padStart(16, '0');
  return `${time}-${hash('sha256', `${kind} ${id}`, 'base64url').slice(0, 22)}`;
}
