import { FLOWS, type Flow, forbids, OWN_LIST, STEPS } from './flows.ts';
import type { JudgedService } from './service.ts';
import { JudgedTenant } from './tenant.ts';
import { FORMATS, type Format, PROFILES, type Profile, type Row, reasonOf, within } from './verdict.ts';
import type { JudgedWallet } from './wallet.ts';

const FLOW_SECONDS = 45;
type Surroundings = Parameters<typeof JudgedTenant.open>[3];

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
  for (const profile of PROFILES) {
    const tenant = await JudgedTenant.open(service, profile, await wallet.trust(), surroundings);
    try {
      const anchors = await anchorsOf(tenant);
      for (const flow of Object.keys(FLOWS) as Flow[]) {
        for (const format of FORMATS) {
          const row = await judgeFlow(wallet, tenant, { profile, flow, format, anchors });
          rows.push(row);
          tell(row);
        }
      }
    } finally {
      await tenant.close();
    }
  }
  return rows;
}

/** Whether a tenant under `haip` issues to the wallet because of what the tool itself publishes. */
async function judgeOwnList(
  wallet: JudgedWallet,
  service: JudgedService,
  surroundings: Surroundings,
): Promise<Row | undefined> {
  if (wallet.ownTrust === undefined) return undefined;
  const tenant = await JudgedTenant.open(service, 'haip', await wallet.ownTrust(), surroundings);
  try {
    const anchors = await anchorsOf(tenant);
    const place = { profile: 'haip', flow: 'preAuthorized', format: 'dc+sd-jwt', anchors } as const;
    return { ...(await judgeFlow(wallet, tenant, place)), flow: OWN_LIST };
  } finally {
    await tenant.close();
  }
}

async function judgeFlow(
  wallet: JudgedWallet,
  tenant: JudgedTenant,
  { profile, flow, format, anchors }: Place,
): Promise<Row> {
  const place = { tool: wallet.tool.name, profile, flow: FLOWS[flow], format };
  const forbidden = forbids(profile, flow);
  if (forbidden !== undefined) return { ...place, result: 'forbidden', detail: forbidden };
  const lacking = wallet.lacks(flow, format, profile);
  if (lacking !== undefined) return { ...place, result: 'lacking', detail: lacking };
  try {
    const run = await wallet.begin({ profile, flow, format, anchors });
    await within(FLOW_SECONDS, FLOWS[flow], STEPS[flow]({ tenant, format, wallet: run }));
    return { ...place, result: 'works' };
  } catch (error) {
    return { ...place, result: 'fails', detail: reasonOf(error) };
  }
}

type Place = {
  readonly profile: Profile;
  readonly flow: Flow;
  readonly format: Format;
  readonly anchors: readonly string[];
};

/** Under which the tenant issues and asks. */
export async function anchorsOf({ admin }: JudgedTenant): Promise<readonly string[]> {
  const anchors: string[] = [];
  for (const id of ['issuer', 'signing', 'access']) {
    const chain = await admin.get<{ rootCertificate?: string | null }>(`/key-chain/${id}`);
    if (chain.rootCertificate) anchors.push(chain.rootCertificate.replaceAll(/-----[^-]+-----|\s/g, ''));
  }
  return anchors;
}
