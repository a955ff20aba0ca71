import type { Identity } from '../api/log-in.ts';

export type PageProps = { readonly identity: Identity; readonly id: string };
