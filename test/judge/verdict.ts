/** The profile of a tenant; see docs/reference/profiles.md. */
export const PROFILES = ['none', 'haip', 'eu'] as const;
export type Profile = (typeof PROFILES)[number];

export const FORMATS = ['dc+sd-jwt', 'mso_mdoc'] as const;
export type Format = (typeof FORMATS)[number];

export const RESULTS = {
  works: 'works',
  fails: 'FAILS',
  lacking: 'not offered by the tool',
  forbidden: 'not allowed by the profile',
  missing: 'tool not had',
} as const;
export type Result = keyof typeof RESULTS;

/** One line of the table: what one tool says of one flow. */
export type Row = {
  readonly tool: string;
  /** Absent where the tool knows no profiles. */
  readonly profile?: Profile;
  readonly flow: string;
  readonly format?: Format;
  readonly result: Result;
  /** Why, for everything that does not work. */
  readonly detail?: string;
};

/** A tool as it was run. */
export type Tool = { readonly name: string; readonly version: string; readonly about: string };

export function describeRow({ tool, profile, flow, format }: Omit<Row, 'result'>): string {
  return [tool, profile, flow, format].filter((rowPart) => rowPart !== undefined).join(' / ');
}

const MAX_REASON = 400;

/** The error in one line of limited length without addresses; errors of fetch have it in their cause. */
export function errorReason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const text = withoutProblem(error instanceof Error ? error.message : String(error)) + cause;
  const line = text.replaceAll(/\s+/g, ' ').replaceAll(/'?https?:\/\/(localhost|127\.0\.0\.1)[^\s'"]*'?/g, 'the service');
  return line.trim().slice(0, MAX_REASON);
}

/** The text of a problem response (RFC 9457) without property names. */
function withoutProblem(text: string): string {
  const [, answerPrefix, json] = /^(.* answered \d{3}: )(\{.*\})$/s.exec(text) ?? [];
  if (answerPrefix === undefined || json === undefined) return text;
  try {
    const { title, detail, errors } = JSON.parse(json) as Problem;
    const faults = errors?.map(({ path, message }) => `${path} ${message}`).join('; ');
    return answerPrefix + (faults || detail || title || json);
  } catch {
    return text;
  }
}

type Problem = {
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
};

/** @throws Error when it takes longer. */
export async function withTimeout<T>(seconds: number, description: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${description} took longer than ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
