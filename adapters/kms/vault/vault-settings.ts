/** How the service proves to Vault who it is. */
export type VaultAuth =
  | { readonly method: 'token'; readonly token: string }
  | { readonly method: 'approle'; readonly mount: string; readonly roleId: string; readonly secretId: string }
  | {
      readonly method: 'kubernetes';
      readonly mount: string;
      readonly role: string;
      /** File with the token of the service account. */
      readonly tokenFile: string;
    };

/** A Vault or OpenBao as the configuration describes it. */
export type VaultSettings = {
  /** `https://host:port`, also with a path. */
  readonly address: string;
  /** Where the engine Transit is mounted. */
  readonly mount: string;
  readonly namespace?: string | undefined;
  readonly auth: VaultAuth;
  /** File with the authorities (PEM) that its certificate may come from; otherwise those that Node trusts. */
  readonly ca?: string | undefined;
  /** Calls that may be under way at the same time. */
  readonly atOnce: number;
  /** For one call, waiting included. */
  readonly timeoutSeconds: number;
};

/** A mount as a path: each of its parts encoded, without empty ones. */
export function mountPath(mount: string): string {
  return mount.split('/').filter(Boolean).map(encodeURIComponent).join('/');
}
