import { type Json, mapStrings } from '../../domain/shared/json.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The service's own secrets: a document with one of them could send it to a backend. */
const FORBIDDEN_VARIABLES: ReadonlySet<string> = new Set([
  'MASTER_SECRET',
  'JWT_SECRET',
  'AUTH_CLIENT_SECRET',
  'OIDC_CLIENT_SECRET',
  'DATABASE_URL',
  'DATABASE_MIGRATION_URL',
  'AMQP_URL',
  'KMS_CONFIG',
]);
/**
 * Credentials of the process, its database driver, its key providers and its cloud environment:
 * `PGPASSWORD`, `VAULT_TOKEN`, `AWS_SECRET_ACCESS_KEY`, `NPM_TOKEN`.
 */
const FORBIDDEN_FAMILIES =
  /^(?:PG|AMQP_|KMS_|VAULT_|BAO_|AWS_|AZURE_|ARM_|GOOGLE_|GCP_|CLOUDSDK_|KUBERNETES_|DOCKER_|NPM_|NODE_|GITHUB_|GITLAB_|CI_|SSH_)/i;

/** Alternatives in order: an escaped placeholder, a placeholder, an unterminated placeholder. */
const PLACEHOLDER = /\$\$\{|\$\{([^}]*)\}|\$\{/g;
/** Special characters of regular expressions. */
const SPECIAL = /[\\^$.*+?()[\]{}|]/g;
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?$/s;

export type FilledDocument = {
  readonly value: Json;
  readonly faults: readonly { readonly path: string; readonly message: string }[];
  /** Values from the environment by variable. */
  readonly used: ReadonlyMap<string, string>;
  /** Texts with filled placeholders, and their form in the document. */
  readonly originalTexts: ReadonlyMap<string, string>;
};

/**
 * Fills `${NAME}` and `${NAME:default}` in the texts of a document, not in names of properties. An empty variable counts as absent, and
 * line breaks at the end of a value are removed. `$${` stands for `${`. Filled values are not searched again.
 * @param forbiddenVariables further variables that documents may not use; undefined for a file of the operator, which may use
 *   credentials of the environment.
 */
export function fillPlaceholders(
  document: Json,
  environment: Environment,
  forbiddenVariables: readonly string[] | undefined,
): FilledDocument {
  const faults: { path: string; message: string }[] = [];
  const used = new Map<string, string>();
  const originalTexts = new Map<string, string>();
  const fill = (text: string, path: string) => {
    const full = text.replaceAll(PLACEHOLDER, (placeholder: string, inside: string | undefined) => {
      if (placeholder === '$${') return '${';
      const result = lookUp(inside, environment, forbiddenVariables);
      if ('value' in result) {
        if (result.name !== undefined) used.set(result.name, result.value);
        return result.value;
      }
      faults.push({ path, message: result.fault });
      return placeholder;
    });
    if (full !== text) originalTexts.set(full, text);
    return full;
  };
  return { value: mapStrings(document, fill), faults, used, originalTexts };
}

type LookUp = { readonly value: string; readonly name?: string } | { readonly fault: string };

function lookUp(inside: string | undefined, environment: Environment, forbiddenVariables: readonly string[] | undefined): LookUp {
  const [, name, fallback] = NAME.exec(inside ?? '') ?? [];
  if (name === undefined) {
    return { fault: `a placeholder is written \${NAME} or \${NAME:default}; for the text "\${" itself write $\${` };
  }
  const isForeign = forbiddenVariables !== undefined && (FORBIDDEN_FAMILIES.test(name) || forbiddenVariables.includes(name));
  if (FORBIDDEN_VARIABLES.has(name) || isForeign)
    return { fault: `${name} belongs to the service itself or to what it runs on; use another variable` };
  // Secrets that are read from files often end in a line break.
  const value = environment[name]?.replace(/[\r\n]+$/, '');
  if (value !== undefined && value !== '') return { value, name };
  if (fallback !== undefined) return { value: fallback };
  return { fault: `the variable ${name} is not set` };
}

/** Minimum length of values that are removed anywhere in a message. */
const MIN_LENGTH_ANYWHERE = 8;
/** Minimum length of values that are removed as whole words. */
const MIN_LENGTH_AS_WORD = 4;
/** Words and numbers that may also be part of messages. */
const ORDINARY = /^([a-z]+|\d+)$/;
/** First code point of a private use plane. */
const FIRST_MARK = 0xf0000;
const QUOTED = /"(?:[^"\\]|\\.)*"/g;

/**
 * Removes values from the environment from a message, without damaging the words of the message: a short value that is an ordinary word
 * is only removed in quotes, as values of documents are quoted.
 * @param used see `FilledDocument`.
 */
export function withoutValues(text: string, used: ReadonlyMap<string, string>): string {
  // Values are first replaced by unique marks, so that no value is searched in the name of a variable.
  const marks = new Map<string, string>();
  const quotedMarks = new Map<string, string>();
  const names = [...used.keys()];
  for (const [index, name] of names.entries()) {
    const mark = String.fromCodePoint(FIRST_MARK + index);
    const value = used.get(name) ?? '';
    // Also in JSON notation.
    for (const form of [value, JSON.stringify(value).slice(1, -1)]) {
      marks.set(form, mark);
      quotedMarks.set(`"${form}"`, `"${mark}"`);
    }
  }
  const marksOf = (holds: (value: string) => boolean) => new Map([...marks].filter(([value]) => holds(value)));
  const longMarks = marksOf((value) => value.length >= MIN_LENGTH_ANYWHERE);
  const wordMarks = marksOf((value) => value.length >= MIN_LENGTH_AS_WORD);
  const unusualMarks = marksOf((value) => value.length >= MIN_LENGTH_AS_WORD && !ORDINARY.test(value));
  const withoutLong = replaceAll(text, new Map([...quotedMarks, ...longMarks]));
  const withoutQuoted = withoutLong.replaceAll(QUOTED, (quoted) => replaceAll(quoted, wordMarks));
  const withMarks = replaceAll(withoutQuoted, unusualMarks, '[A-Za-z0-9]');
  return names.reduce(
    (message, name, index) => message.replaceAll(String.fromCodePoint(FIRST_MARK + index), () => `\${${name}}`),
    withMarks,
  );
}

/** @param bound characters that may not be adjacent to a match. Longer values come first. */
function replaceAll(text: string, by: ReadonlyMap<string, string>, bound?: string): string {
  if (by.size === 0) return text;
  const forms = [...by.keys()].sort((form, otherForm) => otherForm.length - form.length);
  const alternatives = forms.map((form) => form.replaceAll(SPECIAL, '\\$&')).join('|');
  const pattern = bound === undefined ? alternatives : `(?<!${bound})(?:${alternatives})(?!${bound})`;
  return text.replaceAll(new RegExp(pattern, 'g'), (form) => by.get(form) ?? form);
}
