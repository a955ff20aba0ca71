import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { rawSql } from './databases.ts';
import { certify, pem } from './test-certificates.ts';

/** A placeholder, written so that the linter does not report a template. */
export const placeholder = (expression: string) => `$\{${expression}}`;

export type Files = Readonly<Record<string, unknown>>;

/** A folder for configuration files; objects are written as JSON, texts unchanged, and undefined removes a file. */
export class ConfigFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'vidimus-test-'));

  write(files: Files): void {
    for (const [name, content] of Object.entries(files)) {
      const file = join(this.path, name);
      if (content === undefined) rmSync(file);
      else {
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
      }
    }
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Secrets that only the environment and, sealed or hashed, the database contain. */
export const SECRETS = {
  ACME_ACCESS_KEY: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
  ACME_WEBHOOK: 'the-key-of-the-webhooks',
  ACME_UPSTREAM: 'the-secret-at-the-upstream',
  ACME_PASSWORD: 'the-password-at-the-registrar',
  ACME_SHOP: 'the-secret-of-the-shop',
} as const;

const webhook = (path: string) => ({
  url: `https://backend.example/${path}`,
  auth: { type: 'apiKey', config: { headerName: 'X-Key', value: placeholder('ACME_WEBHOOK') } },
});

export const CARD = {
  config: { format: 'dc+sd-jwt', scope: 'card', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:acme:card:1',
  disclosureFrame: { _sd: ['name'] },
  claimsWebhook: webhook('claims'),
  keyChainId: 'second',
  iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId: 'age' }],
};
export const AGE = {
  dcql_query: { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] } }] },
  webhook: webhook('presented'),
  trustAnchors: [{ keyChainId: 'second' }, { trustList: `${placeholder('PUBLIC_URL')}/acme/trust-list/issuers` }],
  accessKeyChainId: 'access',
};
export const SHOP = {
  roles: ['presentation:request', 'issuance:offer'],
  secret: placeholder('ACME_SHOP'),
  allowedPresentationConfigs: ['age'],
  allowedIssuanceConfigs: ['card'],
};

/** Two tenants with one resource of each kind, in JSON and YAML. */
export const FILES: Files = {
  'acme/tenant.yaml': [
    'name: Acme # what administrators see',
    'description: "costs $${5}"',
    'roles: [clients:manage, issuance:manage, presentation:manage]',
    'statusListConfig:',
    '  bits: 2',
    '  immediateUpdate: true',
    '',
  ].join('\n'),
  'acme/keys/access.json': { usageType: 'access', key: placeholder('ACME_ACCESS_KEY'), description: 'Brought' },
  'acme/keys/second.json': { usages: ['signing', 'statusList'], algorithm: 'ES384', rotationEnabled: true, country: 'AT' },
  'acme/registrar.json': {
    registrarUrl: 'https://registrar.example/api',
    oidcUrl: 'https://login.registrar.example',
    clientId: 'vidimus',
    username: 'acme',
    password: placeholder('ACME_PASSWORD'),
  },
  'acme/presentation/age.json': AGE,
  'acme/trust-lists/issuers.yaml':
    'entities:\n  - type: internal\n    issuerKeyChainId: signing\n    info: {name: Acme, country: DE, streetAddress: Weg 1}\n',
  'acme/issuance/config.json': {
    display: [{ name: 'Acme', locale: 'en' }],
    batchSize: 3,
    chainedAs: { upstream: { issuer: 'https://login.example', clientId: 'acme', clientSecret: placeholder('ACME_UPSTREAM') } },
  },
  'acme/issuance/credentials/card.json': CARD,
  'acme/clients/acme-shop.json': SHOP,
  'other/tenant.json': { id: 'other', name: 'Other' },
};

/** A key with certificates of an external CA, as PEM. */
export async function makeImportedKey(): Promise<{ readonly key: string; readonly certificates: string }> {
  const ca = await certify({ name: 'A CA', ca: true });
  const leaf = await certify({ name: 'A leaf', by: ca });
  return { key: leaf.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string, certificates: pem(leaf) + pem(ca) };
}

/** All rows by table, sorted; tables of maintenance are omitted. */
export async function dump(url: string): Promise<Readonly<Record<string, readonly string[]>>> {
  return rawSql(url, async (run) => {
    const names = await run(
      url.startsWith('sqlite:')
        ? `select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`
        : `select table_name as name from information_schema.tables where table_schema = 'public'`,
    );
    const tables: Record<string, string[]> = {};
    for (const { name } of names) {
      // Each start writes to these tables.
      if (name === 'leases' || name === 'service_terms') continue;
      const rows = await run(`select * from ${String(name)}`);
      tables[String(name)] = rows.map((row) => JSON.stringify(row)).sort();
    }
    return tables;
  });
}
