export type Change = { readonly member: string; readonly before?: unknown; readonly after?: unknown };

export type Entry = {
  readonly sequence: number;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly kind: string;
  readonly target: string;
  readonly changes: readonly Change[];
  readonly requestId?: string;
  readonly of?: { readonly tenantId: string; readonly sequence: number };
  readonly hash: string;
};

/** Members of an entry by what became of them: each group has some. */
export type Groups = {
  readonly changed: readonly Change[];
  readonly set: readonly Change[];
  readonly unset: readonly Change[];
  readonly untold: readonly Change[];
};

export function groupsOf(changes: readonly Change[]): Groups {
  const having = (before: boolean, after: boolean) =>
    changes.filter((change) => (change.before !== undefined) === before && (change.after !== undefined) === after);
  return { changed: having(true, true), set: having(false, true), unset: having(true, false), untold: having(false, false) };
}
