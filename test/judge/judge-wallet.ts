import { FLOWS, type Flow, forbids, OWN_LIST, PRESENTING, STEPS } from './flows.ts';
import type { JudgedService } from './service.ts';
import { JudgedTenant, type Surroundings } from './tenant.ts';
import { FORMATS, type Format, PROFILES, type Row, reasonOf, within } from './verdict.ts';
import type { JudgedWallet } from './wallet.ts';

const FLOW_SECONDS = 45;
const ELSEWHERE = 'what is presented comes from a tenant without a profile, since none is issued here';

/** Everything that one wallet is asked to do. @param tell is called with each line as it comes. */
export async function judgeWallet(
  wallet: JudgedWallet,
  service: JudgedService,
  surroundings: Surroundings,
  tell: (row: Row) => void,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const ownList = await judgeOwnList(wallet, service, surroundings);
  if (ownList !== undefined) {
    rows.push(ownList);
    tell(ownList);
  }
  const { authorities } = surroundings;
  const open: JudgedTenant[] = [];
  try {
    for (const profile of PROFILES) {
      const elsewhere = wallet.issuedElsewhere?.includes(profile) ? open[0] : undefined;
      const anchors = elsewhere === undefined ? [] : [await rootOf(elsewhere)];
      const around = { ...surroundings, anchors };
      const tenant = await JudgedTenant.open(service, profile, await wallet.trust(), around);
      open.push(tenant);
      for (const flow of Object.keys(FLOWS) as Flow[]) {
        const issuer = PRESENTING.includes(flow) && elsewhere !== undefined ? elsewhere : tenant;
        for (const format of FORMATS) {
          const row = await judgeFlow(wallet, { tenant, issuer }, { flow, format, authorities });
          rows.push(row);
          tell(row);
        }
      }
    }
  } finally {
    for (const tenant of open) await tenant.close();
  }
  return rows;
}

/** Whether a tenant under `haip` issues to the wallet because of what the tool itself publishes. */
async function judgeOwnList(wallet: JudgedWallet, service: JudgedService, surroundings: Surroundings): Promise<Row | undefined> {
  if (wallet.ownTrust === undefined) return undefined;
  const tenant = await JudgedTenant.open(service, 'haip', await wallet.ownTrust(), surroundings);
  try {
    const { authorities } = surroundings;
    const place = { flow: 'preAuthorized', format: 'dc+sd-jwt', authorities } as const;
    return { ...(await judgeFlow(wallet, { tenant, issuer: tenant }, place)), flow: OWN_LIST };
  } finally {
    await tenant.close();
  }
}

type Asked = Pick<Surroundings, 'authorities'> & { readonly flow: Flow; readonly format: Format };

async function judgeFlow(
  wallet: JudgedWallet,
  { tenant, issuer }: { readonly tenant: JudgedTenant; readonly issuer: JudgedTenant },
  { flow, format, authorities }: Asked,
): Promise<Row> {
  const { profile } = tenant;
  const place = { tool: wallet.tool.name, profile, flow: FLOWS[flow], format };
  const forbidden = forbids(profile, flow);
  if (forbidden !== undefined) return { ...place, result: 'forbidden', detail: forbidden };
  const lacking = wallet.lacks(flow, format, profile);
  if (lacking !== undefined) return { ...place, result: 'lacking', detail: lacking };
  try {
    const anchors = [
      ...(await anchorsOf(tenant)),
      ...(issuer === tenant ? [] : await anchorsOf(issuer)),
      // The authority for access certificates of the tenants under `eu`
      authorities.registrar.ca.certificate,
    ];
    const run = await wallet.begin({ profile, issuerProfile: issuer.profile, flow, format, anchors });
    const stage = { tenant, issuer, format, wallet: run };
    await within(FLOW_SECONDS, FLOWS[flow], STEPS[flow](stage));
    return { ...place, result: 'works', ...(issuer !== tenant && { detail: ELSEWHERE }) };
  } catch (error) {
    return { ...place, result: 'fails', detail: reasonOf(error) };
  }
}

/** The authority of what a tenant issues, as PEM. */
async function rootOf({ admin }: JudgedTenant): Promise<string> {
  return (await admin.get<{ rootCertificate: string }>('/key-chain/issuer')).rootCertificate;
}

/** Under which the tenant issues and asks. */
export async function anchorsOf({ admin }: JudgedTenant): Promise<readonly string[]> {
  const anchors: string[] = [];
  for (const id of ['issuer', 'signing', 'access', 'further']) {
    const chain = await admin.get<{ rootCertificate?: string | null }>(`/key-chain/${id}`);
    if (chain.rootCertificate) anchors.push(chain.rootCertificate.replaceAll(/-----[^-]+-----|\s/g, ''));
  }
  return anchors;
}
