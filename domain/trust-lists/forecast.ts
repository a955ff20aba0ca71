import { hash } from 'node:crypto';

/** Kinds of objects with an end. */
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

/** Ids of the configurations that fail when something ends. */
export type AffectedConfigurations = { readonly issuance: readonly string[]; readonly presentation: readonly string[] };

/** The responsible role of the administrator; both for objects that both sides need. */
export type Side = keyof AffectedConfigurations;

export type Ending = {
  readonly kind: ForecastKind;
  /** Id of the object; for a certificate its fingerprint. */
  readonly id: string;
  readonly name: string;
  readonly endsAt: Date;
  /** True if the service renews it automatically, unless an error prevents that. */
  readonly renews: boolean;
  readonly affects: AffectedConfigurations;
  readonly advice: string;
};

export type ForecastItem = Ending & { readonly key: string };

export type ForecastQuery = {
  readonly sides: ReadonlySet<Side>;
  readonly until: Date | undefined;
  readonly kind: ForecastKind | undefined;
  /** Case-insensitive search in its id, its name, and the ids of affected configurations. */
  readonly words: string | undefined;
  readonly limit: number;
  readonly after: string | undefined;
  readonly sort: 'asc' | 'desc';
};

export type ForecastPage = {
  readonly items: readonly ForecastItem[];
  /** Number of items on all pages. */
  readonly count: number;
  readonly next: string | undefined;
};

/** Limit of configurations per item; the first by id. */
const MAX_AFFECTED = 100;

/** A page of endings in chronological order. Endings and configurations of sides that the caller does not administer are omitted. */
export function forecastPage(
  endings: readonly Ending[],
  { sides, until: latestEnd, kind, words, limit, after: cursor, sort }: ForecastQuery,
): ForecastPage {
  const direction = sort === 'asc' ? 1 : -1;
  const items = mergeEndings(endings.flatMap((ending) => visibleFor(ending, sides)))
    .filter((ending) => matchesQuery(ending, { until: latestEnd, kind, words: words?.toLowerCase() }))
    .map((ending): ForecastItem => ({ ...ending, key: keyOf(ending) }))
    .sort((a, b) => (a.key < b.key ? -direction : direction));
  const remaining = items.filter(({ key }) => cursor === undefined || (sort === 'asc' ? key > cursor : key < cursor));
  const page = remaining.slice(0, limit);
  const nextCursor = remaining.length > limit ? page.at(-1)?.key : undefined;
  return { items: page, count: items.length, next: nextCursor };
}

function matchesQuery(
  { endsAt, kind: endingKind, id, name, affects }: Ending,
  { until: latestEnd, kind, words }: Pick<ForecastQuery, 'until' | 'kind' | 'words'>,
): boolean {
  if (latestEnd !== undefined && endsAt > latestEnd) return false;
  if (kind !== undefined && endingKind !== kind) return false;
  const searchable = [id, name, ...affects.issuance, ...affects.presentation];
  return words === undefined || searchable.some((text) => text.toLowerCase().includes(words));
}

/** Merges the endings of one object that several configurations refer to, with their advice. */
function mergeEndings(endings: readonly Ending[]): readonly Ending[] {
  const groups = Map.groupBy(endings, ({ kind, id }) => `${kind} ${id}`);
  return [...groups.values()].flatMap((same) => {
    const [firstEnding] = same;
    if (firstEnding === undefined) return [];
    const affectedOf = (side: Side) => [...new Set(same.flatMap(({ affects }) => affects[side]))].sort().slice(0, MAX_AFFECTED);
    const renews = same.every((ending) => ending.renews);
    const advice = [...new Set(same.map((ending) => ending.advice))].join('; ');
    return [{ ...firstEnding, renews, advice, affects: { issuance: affectedOf('issuance'), presentation: affectedOf('presentation') } }];
  });
}

/** Removes affected configurations of other sides; an ending that affects nothing is visible for all. */
function visibleFor(ending: Ending, sides: ReadonlySet<Side>): readonly Ending[] {
  const { affects } = ending;
  const visibleIds = (side: Side) => (sides.has(side) ? affects[side] : []);
  const visible = { issuance: visibleIds('issuance'), presentation: visibleIds('presentation') };
  const isIdle = affects.issuance.length + affects.presentation.length === 0;
  const isVisible = visible.issuance.length + visible.presentation.length > 0;
  return isIdle || isVisible ? [{ ...ending, affects: visible }] : [];
}

function keyOf({ endsAt, kind, id }: Ending): string {
  const time = String(Math.max(0, endsAt.getTime())).padStart(16, '0');
  return `${time}-${hash('sha256', `${kind} ${id}`, 'base64url').slice(0, 22)}`;
}
