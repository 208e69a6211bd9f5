// The lines that the toy resource adds to files that exist: each goes right after the last line that matches `after`.
export const edits = [
  { file: 'handlers/routes.h', after: /^extern const struct route \w+\[\];$/, lines: ['extern const struct route label_routes[];'] },
  { file: 'handlers/routes.c', after: /^ {4}\w+_routes,$/, lines: ['    label_routes,'] },
  {
    file: 'tests/db/owned_rows.h',
    after: /^\} fillers\[\] = \{$/,
    lines: [
      '    { "labels", "insert into daybook.labels (owner, label, known_from, caption) "',
      '                "select $1, \'label-\' || n, \'2026-01-01\', $2 || n from generate_series(1, 2) n" },',
    ],
  },
  { file: 'tests/db/test_statements.c', after: /^ {4}\{ "version", 0, /, lines: ['    { "label", 0, "label-1", "label-9" },', '    { "caption", 0, "one", "two" },'] },
  { file: 'openapi/openapi.yaml', after: /^tags:$/, lines: ['  - name: Labels', '    description: Short texts under names.'] },
  { file: 'openapi/openapi.yaml', after: /^x-files:$/, lines: ['  - labels.yaml'] },
  { file: 'docs/README.md', after: /^\| \[[^\]]+\]\(embeddings\.md\)/, lines: ['| [Labels](labels.md) | short texts under names |'] },
];
