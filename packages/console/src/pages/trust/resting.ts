/** Something that ends, as the interface tells of it. */
export type Ending = {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  readonly endsAt: string;
  readonly renews: boolean;
  readonly affects: { readonly issuance: readonly string[]; readonly presentation: readonly string[] };
  readonly advice: string;
};

/** A credential or a question. */
export type Resting = { readonly key: string; readonly page: 'credentials' | 'questions'; readonly name: string };

export const keyOf = ({ kind, id }: Ending) => `${kind} ${id}`;

export function restingOn({ affects: { issuance, presentation } }: Ending): readonly Resting[] {
  const named = (page: Resting['page'], names: readonly string[]) => names.map((name) => ({ key: `${page} ${name}`, page, name }));
  return [...named('credentials', issuance), ...named('questions', presentation)];
}

/** Each once, in the order in which it is first named. */
export function allResting(endings: readonly Ending[]): readonly Resting[] {
  return [...new Map(endings.flatMap(restingOn).map((usage) => [usage.key, usage])).values()];
}
