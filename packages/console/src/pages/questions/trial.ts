type Path = readonly (string | number | null)[];

export type TriedCheck = {
  readonly check: string;
  readonly result: 'passed' | 'failed';
  readonly section: string;
  readonly input?: string;
  readonly detail?: string;
};

export type TriedQuery = {
  readonly id: string;
  readonly result: 'passed' | 'failed';
  readonly reason?: string;
  readonly missing: readonly Path[];
  readonly report: readonly TriedCheck[];
};

export type TriedPresentation = {
  readonly format: string;
  readonly types: readonly string[];
  readonly shown?: readonly Path[];
  readonly queries: readonly TriedQuery[];
};

export type Trial = {
  readonly presentations: readonly TriedPresentation[];
  readonly missing: readonly string[];
  readonly untried: readonly string[];
};

export const namesOf = (paths: readonly Path[]) => paths.map((path) => path.map((step) => step ?? '*').join(' › '));
