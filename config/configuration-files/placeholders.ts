import { type Json, mapTexts } from '../../domain/shared/json.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The service's own secrets: a document that names one would hand it to the one it is sent to. */
const WITHHELD: ReadonlySet<string> = new Set([
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
 * What the process, its database driver, its key providers and the cloud around it find their own credentials by:
 * `PGPASSWORD`, `VAULT_TOKEN`, `AWS_SECRET_ACCESS_KEY`, `NPM_TOKEN`.
 */
const WITHHELD_FAMILIES =
  /^(?:PG|AMQP_|KMS_|VAULT_|BAO_|AWS_|AZURE_|ARM_|GOOGLE_|GCP_|CLOUDSDK_|KUBERNETES_|DOCKER_|NPM_|NODE_|GITHUB_|GITLAB_|CI_|SSH_)/i;

/** In this order: an escaped beginning, a placeholder, the beginning of one that never ends. */
const PLACEHOLDER = /\$\$\{|\$\{([^}]*)\}|\$\{/g;
/** Characters that mean something in a pattern. */
const SPECIAL = /[\\^$.*+?()[\]{}|]/g;
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?$/s;

export type Filled = {
  readonly value: Json;
  readonly faults: readonly { readonly path: string; readonly message: string }[];
  /** What came out of the environment, by the name of its variable. */
  readonly used: ReadonlyMap<string, string>;
  /** Texts with something filled in, and how the document has them. */
  readonly texts: ReadonlyMap<string, string>;
};

/**
 * Fills `${NAME}` and `${NAME:default}` in the texts of a document; names of members stay as they are. An empty
 * variable counts as absent, and line breaks at the end of a value are removed. `$${` stands for `${`. What is filled in is not looked at again.
 * @param withheld further variables that no document may name; undefined for a file of the operator's own, which may name
 *   credentials of what the service runs on.
 */
export function fillPlaceholders(document: Json, environment: Environment, withheld: readonly string[] | undefined): Filled {
  const faults: { path: string; message: string }[] = [];
  const used = new Map<string, string>();
  const texts = new Map<string, string>();
  const fill = (text: string, path: string) => {
    const full = text.replaceAll(PLACEHOLDER, (found: string, inside: string | undefined) => {
      if (found === '$${') return '${';
      const result = lookUp(inside, environment, withheld);
      if ('value' in result) {
        if (result.name !== undefined) used.set(result.name, result.value);
        return result.value;
      }
      faults.push({ path, message: result.fault });
      return found;
    });
    if (full !== text) texts.set(full, text);
    return full;
  };
  return { value: mapTexts(document, fill), faults, used, texts };
}

type LookUp = { readonly value: string; readonly name?: string } | { readonly fault: string };

function lookUp(inside: string | undefined, environment: Environment, withheld: readonly string[] | undefined): LookUp {
  const [, name, fallback] = NAME.exec(inside ?? '') ?? [];
  if (name === undefined) {
    return {
      fault: `a placeholder is written \${NAME} or \${NAME:default}; for the text "\${" itself write $\${`,
    };
  }
  const isForeign = withheld !== undefined && (WITHHELD_FAMILIES.test(name) || withheld.includes(name));
  if (WITHHELD.has(name) || isForeign)
    return { fault: `${name} belongs to the service itself or to what it runs on; use another variable` };
  // Secrets that are read from files often end in a line break.
  const value = environment[name]?.replace(/[\r\n]+$/, '');
  if (value !== undefined && value !== '') return { value, name };
  if (fallback !== undefined) return { value: fallback };
  return { fault: `the variable ${name} is not set` };
}

/** Characters from which on a value is not taken for a part of a message. */
const UNMISTAKABLE = 8;
/** Characters from which on a value is told apart within other text. */
const TELLING = 4;
/** Words and numbers that messages have themselves. */
const ORDINARY = /^([a-z]+|\d+)$/;
/** Of a plane for private use. */
const FIRST_MARK = 0xf0000;
const QUOTED = /"(?:[^"\\]|\\.)*"/g;

/**
 * Takes what came out of the environment out of a message again. The words of the message stay as they are: a short
 * value that is an ordinary word is taken out only where it is quoted, as what documents say is.
 * @param used as of `Filled`.
 */
export function withoutValues(text: string, used: ReadonlyMap<string, string>): string {
  // One character for each, of those that nobody writes, until all are found: no value is looked for in a name.
  const marks = new Map<string, string>();
  const wholes = new Map<string, string>();
  const names = [...used.keys()];
  for (const [index, name] of names.entries()) {
    const mark = String.fromCodePoint(FIRST_MARK + index);
    const value = used.get(name) ?? '';
    // Quoted as JSON, too.
    for (const form of [value, JSON.stringify(value).slice(1, -1)]) {
      marks.set(form, mark);
      wholes.set(`"${form}"`, `"${mark}"`);
    }
  }
  const only = (holds: (value: string) => boolean) => new Map([...marks].filter(([value]) => holds(value)));
  const unmistakable = only((value) => value.length >= UNMISTAKABLE);
  const telling = only((value) => value.length >= TELLING);
  const odd = only((value) => value.length >= TELLING && !ORDINARY.test(value));
  const sure = replaceAll(text, new Map([...wholes, ...unmistakable]));
  const unquoted = sure.replaceAll(QUOTED, (quoted) => replaceAll(quoted, telling));
  const marked = replaceAll(unquoted, odd, '[A-Za-z0-9]');
  return names.reduce((shown, name, index) => shown.replaceAll(String.fromCodePoint(FIRST_MARK + index), () => `\${${name}}`), marked);
}

/** @param bound what must stand neither before nor behind. The longest comes first. */
function replaceAll(text: string, by: ReadonlyMap<string, string>, bound?: string): string {
  if (by.size === 0) return text;
  const forms = [...by.keys()].sort((one, other) => other.length - one.length);
  const any = forms.map((form) => form.replaceAll(SPECIAL, '\\$&')).join('|');
  const pattern = bound === undefined ? any : `(?<!${bound})(?:${any})(?!${bound})`;
  return text.replaceAll(new RegExp(pattern, 'g'), (form) => by.get(form) ?? form);
}
