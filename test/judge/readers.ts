import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import type { Authorities } from '../demo/authorities.ts';
import type { Oracles } from '../support/oracles.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';
import { readAnchors } from './judge-wallet.ts';
import type { ServiceUnderTest } from './service.ts';
import { configurationId, isStrict, TestedTenant } from './tenant.ts';
import { errorReason, type Format, PROFILES, type Profile, type Row, type Tool, withTimeout } from './verdict.ts';

const READ_SECONDS = 30;
const READERS = { mso_mdoc: '@owf/mdoc', 'dc+sd-jwt': '@sd-jwt/sd-jwt-vc' } as const satisfies Record<Format, string>;
const FLOW = 'what was issued is read: signature, path to the authority, digests';

export const READER_TOOLS: readonly Tool[] = Object.values(READERS).map((name) => ({
  name,
  version: packageVersion(name),
  about: 'a reader of credentials',
}));

/** Lets libraries that share no code with the service read what it issues. */
export async function judgeByReaders(
  oracles: Oracles,
  service: ServiceUnderTest,
  { authorities, backend }: { readonly authorities: Authorities; readonly backend: string },
  report: (row: Row) => void,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const profile of PROFILES) {
    const trust = authorities.provider.configuration();
    const tenant = await TestedTenant.open(service, profile, trust, { authorities, backend });
    try {
      const anchors = await readAnchors(tenant);
      for (const format of ['dc+sd-jwt', 'mso_mdoc'] as const) {
        const rowContext = { tool: READERS[format], profile, flow: FLOW, format };
        const verdict = readPresentation(oracles, { tenant, profile, format, authorities, anchors });
        const row: Row = await withTimeout(READ_SECONDS, FLOW, verdict).then(
          () => ({ ...rowContext, result: 'works' }),
          (error: unknown) => ({ ...rowContext, result: 'fails', detail: errorReason(error) }),
        );
        rows.push(row);
        report(row);
      }
    } finally {
      await tenant.close();
    }
  }
  return rows;
}

type ReadingContext = {
  readonly tenant: TestedTenant;
  readonly profile: Profile;
  readonly format: Format;
  readonly authorities: Authorities;
  readonly anchors: readonly string[];
};

async function readPresentation(oracles: Oracles, { tenant, profile, format, authorities, anchors }: ReadingContext): Promise<void> {
  const { uri } = await tenant.admin.post<{ uri: string }>('/issuer/offer', {
    ...{ response_type: 'uri', flow: 'pre_authorized_code' },
    credentialConfigurationIds: [configurationId({ issued: 'at-once', format })],
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

function packageVersion(name: string): string {
  const file = new URL('../oracles/package.json', import.meta.url);
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> };
  return dependencies[name] ?? '?';
}
