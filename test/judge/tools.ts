import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Authorities } from '../demo/authorities.ts';
import { findCredoWallets } from '../support/credo.ts';
import { loadOracles } from '../support/oracles.ts';
import { judgeWallet } from './judge-wallet.ts';
import type { Options, ToolName } from './options.ts';
import { judgeByReaders, READER_TOOLS } from './readers.ts';
import { judgeByRequests, runProgram } from './run-program.ts';
import type { JudgedService } from './service.ts';
import type { Row, Tool } from './verdict.ts';
import type { JudgedWallet } from './wallet.ts';
import { Credo } from './wallets/credo.ts';
import { EudiDev } from './wallets/eudi-dev.ts';
import { OpenidPackages } from './wallets/openid-packages.ts';

type Court = {
  readonly service: JudgedService;
  readonly authorities: Authorities;
  readonly backend: string;
  readonly tell: (row: Row) => void;
};
type JudgeResult = { readonly tools: readonly Tool[]; readonly rows: readonly Row[] };

/** One tool, or several that are run together. @throws Error when it cannot be had. */
export type JudgeTool = { readonly name: ToolName; readonly about: string; run(court: Court): Promise<JudgeResult> };

/** Those that are wanted, in the order of the page. */
export function selectJudges({ tools, only, examples }: Options): readonly JudgeTool[] {
  const allJudges: readonly JudgeTool[] = [
    {
      name: 'eudi-dev',
      about: 'a test wallet in Go',
      run: async (court) => runWallet(await startEudiDev(tools, court.authorities), court),
    },
    {
      name: '@openid4vc',
      about: 'packages of the OpenWallet Foundation',
      run: (court) => runWallet(new OpenidPackages(court.authorities), court),
    },
    {
      name: 'Credo',
      about: 'a framework of the OpenWallet Foundation',
      run: (court) => {
        const wallets = findCredoWallets();
        if (wallets === undefined) throw new Error('npm ci --prefix test/wallets/credo');
        return runWallet(new Credo(wallets, court.authorities), court);
      },
    },
    { name: 'readers', about: 'readers of credentials', run: runReaders },
    {
      name: 'Schemathesis',
      about: 'generated requests',
      run: async () => {
        const { tool, row } = await judgeByRequests(findProgram(tools, 'schemathesis'), examples);
        return { tools: [tool], rows: [row] };
      },
    },
  ];
  return only.length === 0 ? allJudges : allJudges.filter(({ name }) => only.includes(name));
}

async function runWallet(wallet: JudgedWallet, { service, authorities, backend, tell }: Court): Promise<JudgeResult> {
  try {
    const rows = await judgeWallet(wallet, service, { authorities, backend }, tell);
    return { tools: [wallet.tool], rows };
  } finally {
    await wallet.close();
  }
}

async function runReaders({ service, authorities, backend, tell }: Court): Promise<JudgeResult> {
  const oracles = loadOracles();
  if (oracles === undefined) throw new Error('npm ci --prefix test/oracles');
  return { tools: READER_TOOLS, rows: await judgeByReaders(oracles, service, { authorities, backend }, tell) };
}

/** A program that was built from a commit does not know which; `eudi-dev.version` beside it may say so. */
async function startEudiDev(tools: string | undefined, authorities: Authorities): Promise<EudiDev> {
  const program = findProgram(tools, 'eudi-dev');
  const note = `${program}.version`;
  const versionText = existsSync(note) ? readFileSync(note, 'utf8') : (await runProgram(program, ['version'], 10)).output;
  return EudiDev.start(program, { version: versionText.trim().split('\n')[0] ?? '?', authorities });
}

/** @throws Error when there is none. */
function findProgram(folder: string | undefined, name: string): string {
  if (folder === undefined) throw new Error('--tools or VIDIMUS_JUDGE_TOOLS names no folder');
  const program = join(folder, name);
  if (!existsSync(program)) throw new Error(`there is no program ${name} in the folder of the tools`);
  return program;
}
