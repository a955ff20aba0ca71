export const statements = [
  `alter table \`clients\` add column \`secret_revision\` integer not null default 0;`,
  `alter table \`clients\` add column \`former_secret_until\` bigint null;`,
];
