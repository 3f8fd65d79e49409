# SPDX-License-Identifier: Apache-2.0
"""The declarations of com.microsoft are those of ONNX Runtime, and each operator has cases."""

import unittest

import make_domain_cases
from domains import case, declarations, refused


class DeclarationsTest(unittest.TestCase):
    def test_each_is_a_schema_of_onnx_runtime(self):
        schemas = declarations.describe_schemas()
        declared = declarations.read_declarations()
        self.assertGreater(len(declared), 50)
        for name, (inputs, outputs, attributes) in declared.items():
            with self.subTest(name):
                self.assertIn(name, schemas)
                self.assertEqual(inputs, schemas[name][0])
                self.assertEqual(outputs, schemas[name][1])
                self.assertEqual(set(attributes), set(schemas[name][2]))
                for attribute, (kind, required, default) in attributes.items():
                    expected = schemas[name][2][attribute]
                    self.assertEqual((kind, required), expected[:2], attribute)
                    self.assertTrue(
                        declarations.same_default(default, expected[2]), (attribute, default, expected[2])
                    )

    def test_each_operator_has_cases(self):
        make_domain_cases.load_modules()
        covered = {name for names in case.functions().values() for name in names}
        self.assertEqual(set(declarations.read_declarations()), covered - {"whole models"})

    def test_each_schema_is_declared_or_refused_with_a_reason(self):
        schemas = declarations.describe_schemas((declarations.MICROSOFT, declarations.BLOCKED))
        self.assertEqual(set(schemas), set(declarations.read_declarations()) & set(schemas) | set(refused.REFUSED))
        self.assertEqual(set(), set(declarations.read_declarations()) & set(refused.REFUSED))


if __name__ == "__main__":
    unittest.main()
