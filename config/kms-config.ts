import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { closestName } from '../domain/shared/closest-name.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { type Json, parseJson } from '../domain/shared/json.ts';
import { describeJsonProblem } from '../domain/shared/json-fault.ts';
import { valueOrUndefined } from '../domain/shared/value-or-undefined.ts';
import { TenantIdSchema } from '../domain/tenants/tenant.ts';
import { type Environment, fillPlaceholders, withoutValues } from './configuration-files/placeholders.ts';

const MAX_BYTES = 256 * 1024;

const ProviderName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and hyphens, at most 63');
const Text = z.string().min(1).max(4096);

const Tenants = { onlyFor: z.array(TenantIdSchema).min(1).optional().describe('Tenants that may create keys here; default: all') };

const limits = {
  timeoutSeconds: z.number().min(0.1).max(60).default(5).describe('Seconds for one call; after that it fails, and the wallet may retry'),
};

const LocalProvider = z.strictObject({ type: z.literal('local').describe('Keys sealed in the database of the service'), ...Tenants });

const Mount = (standard: string) => Text.default(standard).describe('Mount path of the login method');

const VaultAuth = z.discriminatedUnion('method', [
  z.strictObject({ method: z.literal('token').describe('Existing token'), token: Text.describe('Renewed if its policy allows it') }),
  z.strictObject({
    method: z.literal('approle').describe('AppRole'),
    mount: Mount('approle'),
    roleId: Text.describe('`role_id` of the role'),
    secretId: Text.describe('`secret_id` of the role'),
  }),
  z.strictObject({
    method: z.literal('kubernetes').describe('Service account of the pod'),
    mount: Mount('kubernetes'),
    role: Text.describe('Name of the role'),
    tokenFile: Text.default('/var/run/secrets/kubernetes.io/serviceaccount/token').describe(
      'Token of the service account; read at each login',
    ),
  }),
]);

const VaultProvider = z.strictObject({
  type: z.literal('vault').describe('HashiCorp Vault or OpenBao, engine Transit'),
  address: z
    .url({ protocol: /^https?$/ })
    .refine((text) => URL.canParse(text) && new URL(text).username === '', 'without user and password')
    .describe('Such as `https://vault.internal:8200`; http only for tests and a sidecar on loopback'),
  mount: Text.default('transit').describe('Mount path of the Transit engine'),
  namespace: Text.optional().describe('Namespace of Vault Enterprise or OpenBao'),
  auth: VaultAuth.describe('Login method of the service'),
  ca: Text.optional().describe('File with the authorities of its certificate (PEM)'),
  ...Tenants,
  atOnce: z.int().min(1).max(256).default(32).describe('Concurrent calls'),
  ...limits,
});

const Pkcs11Provider = z.strictObject({
  type: z.literal('pkcs11').describe('HSM by its PKCS#11 library'),
  library: Text.describe('File of the library, such as `/usr/lib/softhsm/libsofthsm2.so`'),
  token: Text.describe('Label of the token'),
  pin: Text.describe('PIN of its user'),
  ...Tenants,
  sessions: z.int().min(1).max(64).default(4).describe('Concurrent signatures'),
  ...limits,
});

export const KmsProviderSchema = z.discriminatedUnion('type', [LocalProvider, VaultProvider, Pkcs11Provider]);
export const VaultAuthSchema = VaultAuth;

export const KmsConfigSchema = z.strictObject({
  default: ProviderName.default('local').describe('Provider of new keys'),
  providers: z.record(ProviderName, KmsProviderSchema).describe('By name; keys refer to it, so never rename a provider'),
  tenants: z
    .record(TenantIdSchema, ProviderName)
    .default({})
    .describe('By tenant: provider of new keys, unless `PATCH /tenant/{id}` sets another'),
});

export type VaultSettings = z.output<typeof VaultProvider>;
export type KmsConfig = z.output<typeof KmsConfigSchema>;

/** Default without a configuration: all keys in the database. */
export const LOCAL_KEYS: KmsConfig = { default: 'local', providers: { local: { type: 'local' } }, tenants: {} };

/** The KMS configuration, or its faults, and the variables that it uses. */
export type ReadKmsConfig = {
  readonly config: KmsConfig;
  readonly faults: readonly string[];
  /** Variables that it contains; their values are secrets. */
  readonly secrets: readonly string[];
  /** Path of the file that it was read from, if any. */
  readonly file?: string;
};

/**
 * Reads the KMS configuration: the text of `KMS_CONFIG` or the file that it names, otherwise `kms.json` in the data folder.
 * No fault quotes a value from the environment.
 */
export function readKmsConfig(setting: string | undefined, dataFolder: string, environment: Environment): ReadKmsConfig {
  const defaultFile = join(dataFolder, 'kms.json');
  const file = setting === undefined ? (existsSync(defaultFile) ? defaultFile : undefined) : pathIn(setting);
  if (setting === undefined && file === undefined) return { config: LOCAL_KEYS, faults: [], secrets: [] };
  const name = file === undefined || setting !== undefined ? 'KMS_CONFIG' : defaultFile;
  const withFaults = (...faults: string[]) => ({ config: LOCAL_KEYS, faults: faults.map((fault) => `${name}: ${fault}`), secrets: [] });

  const text = file === undefined ? setting : readText(file);
  if (text === undefined) return withFaults(`there is no readable file ${file} of at most ${MAX_BYTES} bytes`);
  const json = parseJson(text);
  if (json === undefined) return withFaults(describeSyntaxError(text));
  return { ...parseFilled(json, environment, withFaults), ...(file !== undefined && { file }) };
}

function parseFilled(json: Json, environment: Environment, withFaults: (...faults: string[]) => ReadKmsConfig): ReadKmsConfig {
  const { value, faults, used } = fillPlaceholders(json, environment, undefined);
  if (faults.length > 0) return withFaults(...faults.map(({ path, message }) => `${path}: ${message}`));
  const parsed = KmsConfigSchema.safeParse(value);
  if (!parsed.success) {
    return withFaults(
      ...parsed.error.issues.map(({ path, message }) => withoutValues(`${path.length === 0 ? '' : `${path.join('.')}: `}${message}`, used)),
    );
  }
  const unknown = findUnknownNames(parsed.data);
  if (unknown.length > 0) return withFaults(...unknown);
  return { config: parsed.data, faults: [], secrets: [...used.keys()] };
}

/** The position of a syntax error. The text itself is not quoted, since it may contain secrets. */
function describeSyntaxError(text: string): string {
  try {
    JSON.parse(text);
    return describeJsonProblem(text);
  } catch (error) {
    const [, offset] = /position (\d+)/.exec((error as Error).message) ?? [];
    if (offset === undefined) return 'is not valid JSON: it ends too early';
    const line = text.slice(0, Number(offset)).split('\n').length;
    return `is not valid JSON: see line ${line}, maybe a comma or a quotation mark`;
  }
}

function pathIn(setting: string): string | undefined {
  return setting.trimStart().startsWith('{') ? undefined : setting;
}

function readText(file: string): string | undefined {
  return valueOrUndefined(() => (statSync(file).size > MAX_BYTES ? undefined : readFileSync(file, 'utf8')));
}

function findUnknownNames({ default: standard, providers, tenants }: KmsConfig): string[] {
  const names = Object.keys(providers);
  const uses = [['default', standard], ...Object.entries(tenants).map(([id, name]) => [`tenants.${id}`, name])];
  const restrictedFaults = Object.entries(tenants).flatMap(([id, name]) => {
    const { onlyFor } = providers[name] ?? {};
    if (onlyFor === undefined || onlyFor.includes(id as TenantId)) return [];
    return [`tenants.${id}: the provider "${name}" is only for: ${onlyFor.join(', ')}`];
  });
  if (providers[standard]?.onlyFor !== undefined) {
    restrictedFaults.push(`default: the provider "${standard}" is not for all tenants; take its onlyFor away`);
  }
  const missingFaults = uses
    .filter(([, name = '']) => !names.includes(name))
    .map(([path, name = '']) => {
      const suggestion = closestName(name, names);
      return `${path}: there is no provider "${name}"${suggestion === undefined ? '' : `; did you mean "${suggestion}"?`}`;
    });
  return [...missingFaults, ...restrictedFaults];
}
