import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import type { Authorities } from '../demo/authorities.ts';
import type { Oracles } from '../support/oracles.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';
import { anchorsOf } from './judge-wallet.ts';
import type { JudgedService } from './service.ts';
import { configurationOf, isStrict, JudgedTenant } from './tenant.ts';
import { type Format, PROFILES, type Profile, type Row, reasonOf, type Tool, within } from './verdict.ts';

const READ_SECONDS = 30;
const READERS = { mso_mdoc: '@owf/mdoc', 'dc+sd-jwt': '@sd-jwt/sd-jwt-vc' } as const satisfies Record<Format, string>;
const FLOW = 'what was issued is read: signature, path to the authority, digests';

export const READER_TOOLS: readonly Tool[] = Object.values(READERS).map((name) => ({
  name,
  version: versionOf(name),
  about: 'a reader of credentials',
}));

/** Lets libraries that share no code with the service read what it issues. */
export async function judgeByReaders(
  oracles: Oracles,
  service: JudgedService,
  { authorities, backend }: { readonly authorities: Authorities; readonly backend: string },
  tell: (row: Row) => void,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const profile of PROFILES) {
    const trust = authorities.provider.configuration();
    const tenant = await JudgedTenant.open(service, profile, trust, { authorities, backend });
    try {
      const anchors = await anchorsOf(tenant);
      for (const format of ['dc+sd-jwt', 'mso_mdoc'] as const) {
        const place = { tool: READERS[format], profile, flow: FLOW, format };
        const reading = read(oracles, { tenant, profile, format, authorities, anchors });
        const row: Row = await within(READ_SECONDS, FLOW, reading).then(
          () => ({ ...place, result: 'works' }),
          (error: unknown) => ({ ...place, result: 'fails', detail: reasonOf(error) }),
        );
        rows.push(row);
        tell(row);
      }
    } finally {
      await tenant.close();
    }
  }
  return rows;
}

type Reading = {
  readonly tenant: JudgedTenant;
  readonly profile: Profile;
  readonly format: Format;
  readonly authorities: Authorities;
  readonly anchors: readonly string[];
};

async function read(oracles: Oracles, { tenant, profile, format, authorities, anchors }: Reading): Promise<void> {
  const { uri } = await tenant.admin.post<{ uri: string }>('/issuer/offer', {
    ...{ response_type: 'uri', flow: 'pre_authorized_code' },
    credentialConfigurationIds: [configurationOf({ issued: 'at-once', format })],
  });
  const unit = isStrict(profile) ? authorities.newUnit().unit : undefined;
  const [credential] = await new Openid4vcWallet(globalThis.fetch, unit).accept(uri);
  const text = credential?.text ?? '';
  if (format === 'mso_mdoc') {
    const { elements } = await oracles.readMdoc(text, anchors);
    assert.equal(elements['org.iso.18013.5.1']?.['family_name'], 'Lovelace');
  } else {
    const payload = await oracles.readSdJwtVc(text, anchors[0] ?? '');
    assert.equal(payload['family_name'], 'Lovelace');
  }
}

function versionOf(name: string): string {
  const file = new URL('../oracles/package.json', import.meta.url);
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> };
  return dependencies[name] ?? '?';
}
