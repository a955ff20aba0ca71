import { FLOWS, type Flow, forbids, OWN_LIST, PRESENTING, STEPS } from './flows.ts';
import type { ServiceUnderTest } from './service.ts';
import { TestedTenant, type TrustSetup } from './tenant.ts';
import { errorReason, FORMATS, type Format, PROFILES, type Row, withTimeout } from './verdict.ts';
import type { WalletUnderTest } from './wallet.ts';

const FLOW_SECONDS = 45;
const ELSEWHERE = 'what is presented comes from a tenant without a profile, since none is issued here';

/** Runs all flows of one wallet. @param report is called with each row. */
export async function runWalletFlows(
  wallet: WalletUnderTest,
  service: ServiceUnderTest,
  surroundings: TrustSetup,
  report: (row: Row) => void,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const ownList = await testOwnTrustList(wallet, service, surroundings);
  if (ownList !== undefined) {
    rows.push(ownList);
    report(ownList);
  }
  const { authorities } = surroundings;
  const openTenants: TestedTenant[] = [];
  try {
    for (const profile of PROFILES) {
      const issuingTenant = wallet.issuedElsewhere?.includes(profile) ? openTenants[0] : undefined;
      const anchors = issuingTenant === undefined ? [] : [await readRootCertificate(issuingTenant)];
      const around = { ...surroundings, anchors };
      const tenant = await TestedTenant.open(service, profile, await wallet.trust(), around);
      openTenants.push(tenant);
      for (const flow of Object.keys(FLOWS) as Flow[]) {
        const issuer = PRESENTING.includes(flow) && issuingTenant !== undefined ? issuingTenant : tenant;
        for (const format of FORMATS) {
          const row = await runFlow(wallet, { tenant, issuer }, { flow, format, authorities });
          rows.push(row);
          report(row);
        }
      }
    }
  } finally {
    for (const tenant of openTenants) await tenant.close();
  }
  return rows;
}

/** Whether a tenant under `haip` trusts the wallet by the published data of the tool. */
async function testOwnTrustList(wallet: WalletUnderTest, service: ServiceUnderTest, surroundings: TrustSetup): Promise<Row | undefined> {
  if (wallet.ownTrust === undefined) return undefined;
  const tenant = await TestedTenant.open(service, 'haip', await wallet.ownTrust(), surroundings);
  try {
    const { authorities } = surroundings;
    const rowContext = { flow: 'preAuthorized', format: 'dc+sd-jwt', authorities } as const;
    return { ...(await runFlow(wallet, { tenant, issuer: tenant }, rowContext)), flow: OWN_LIST };
  } finally {
    await tenant.close();
  }
}

type FlowContext = Pick<TrustSetup, 'authorities'> & { readonly flow: Flow; readonly format: Format };

async function runFlow(
  wallet: WalletUnderTest,
  { tenant, issuer }: { readonly tenant: TestedTenant; readonly issuer: TestedTenant },
  { flow, format, authorities }: FlowContext,
): Promise<Row> {
  const { profile } = tenant;
  const row = { tool: wallet.tool.name, profile, flow: FLOWS[flow], format };
  const forbidden = forbids(profile, flow);
  if (forbidden !== undefined) return { ...row, result: 'forbidden', detail: forbidden };
  const lacking = wallet.lacks(flow, format, profile);
  if (lacking !== undefined) return { ...row, result: 'lacking', detail: lacking };
  try {
    const anchors = [
      ...(await readAnchors(tenant)),
      ...(issuer === tenant ? [] : await readAnchors(issuer)),
      // The CA for access certificates of the tenants under `eu`
      authorities.registrar.ca.certificate,
    ];
    const run = await wallet.begin({ profile, issuerProfile: issuer.profile, flow, format, anchors });
    const stage = { tenant, issuer, format, wallet: run };
    await withTimeout(FLOW_SECONDS, FLOWS[flow], STEPS[flow](stage));
    return { ...row, result: 'works', ...(issuer !== tenant && { detail: ELSEWHERE }) };
  } catch (error) {
    return { ...row, result: 'fails', detail: errorReason(error) };
  }
}

/** The CA certificate of the credentials of a tenant, as PEM. */
async function readRootCertificate({ admin }: TestedTenant): Promise<string> {
  return (await admin.get<{ rootCertificate: string }>('/key-chain/issuer')).rootCertificate;
}

/** Under which the tenant issues and asks. */
export async function readAnchors({ admin }: TestedTenant): Promise<readonly string[]> {
  const anchors: string[] = [];
  for (const id of ['issuer', 'signing', 'access', 'further']) {
    const chain = await admin.get<{ rootCertificate?: string | null }>(`/key-chain/${id}`);
    if (chain.rootCertificate) anchors.push(chain.rootCertificate.replaceAll(/-----[^-]+-----|\s/g, ''));
  }
  return anchors;
}
