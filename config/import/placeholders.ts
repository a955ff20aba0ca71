import type { Json } from '../../domain/shared/json.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The service's own secrets: a document that names one would hand it to whoever it is sent to. */
const WITHHELD: ReadonlySet<string> = new Set([
  'MASTER_SECRET',
  'JWT_SECRET',
  'AUTH_CLIENT_SECRET',
  'OIDC_CLIENT_SECRET',
  'DATABASE_URL',
  'AMQP_URL',
  'KMS_CONFIG',
]);

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
};

/**
 * Fills `${NAME}` and `${NAME:default}` in the texts of a document; names of members stay as they are. An empty
 * variable counts as absent. `$${` stands for `${`. What is filled in is not looked at again.
 */
export function fillPlaceholders(document: Json, environment: Environment): Filled {
  const faults: { path: string; message: string }[] = [];
  const used = new Map<string, string>();
  const fill = (text: string, path: string) =>
    text.replaceAll(PLACEHOLDER, (found: string, inside: string | undefined) => {
      if (found === '$${') return '${';
      const result = lookUp(inside, environment);
      if ('value' in result) {
        if (result.name !== undefined) used.set(result.name, result.value);
        return result.value;
      }
      faults.push({ path, message: result.fault });
      return found;
    });
  return { value: mapTexts(document, fill), faults, used };
}

/** Writes a text such that it is read back as it is. */
export function escapePlaceholders(text: string): string {
  return text.replaceAll('${', () => '$${');
}

type LookUp = { readonly value: string; readonly name?: string } | { readonly fault: string };

function lookUp(inside: string | undefined, environment: Environment): LookUp {
  const [, name, fallback] = NAME.exec(inside ?? '') ?? [];
  if (name === undefined) {
    return {
      fault: `a placeholder is written \${NAME} or \${NAME:default}; for the text "\${" itself write $\${`,
    };
  }
  if (WITHHELD.has(name)) return { fault: `${name} is a secret of the service itself; use another variable` };
  const value = environment[name];
  if (value !== undefined && value !== '') return { value, name };
  if (fallback !== undefined) return { value: fallback };
  return { fault: `the variable ${name} is not set` };
}

/** Applies `change` to every text, which gets its dotted path. */
export function mapTexts(value: Json, change: (text: string, path: string) => string, path = ''): Json {
  const below = (name: string | number) => (path === '' ? String(name) : `${path}.${name}`);
  if (typeof value === 'string') return change(value, path);
  if (Array.isArray(value)) {
    return value.map((entry: Json, index) => mapTexts(entry, change, below(index)));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapTexts(member, change, below(name))]),
  );
}

/**
 * Takes what came out of the environment out of a message again.
 * @param used as of `Filled`.
 */
export function withoutValues(text: string, used: ReadonlyMap<string, string>): string {
  const names = new Map([...used].map(([name, value]) => [value, name]));
  const values = [...names.keys()].sort((one, other) => other.length - one.length);
  if (values.length === 0) return text;
  const any = new RegExp(values.map((value) => value.replaceAll(SPECIAL, '\\$&')).join('|'), 'g');
  return text.replaceAll(any, (value) => `\${${names.get(value)}}`);
}
